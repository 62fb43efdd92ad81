package apierror

import (
	"regexp"
	"slices"
)

// Some servers do not say that a prompt is too long but that they can't cut it
// down: to a size, any further, because the part they have to keep is as large
// as the context, or because shifting it is switched off. The same verbs are
// said of files, logs and strings, and of a parameter with such a name.

// truncationRules are the wordings of a refusal to cut a prompt.
type truncationRules struct {
	// kept is about the part to keep or the room there is, and says it alone.
	kept *regexp.Regexp
	// act is that something can't be cut, and exhausted that nothing is left
	// that could be.
	act, exhausted *regexp.Regexp
	// prompt names the conversation. loose does so beside a word of about.
	prompt, loose, about *regexp.Regexp
	// other names what else is cut, asked a parameter that asks for it.
	other, asked *regexp.Regexp
	// sentence ends one.
	sentence *regexp.Regexp
	// param matches the names of such parameters.
	param *regexp.Regexp
}

// The words that the wordings are made of.
const (
	promptWords = `(?:prompts?|contexts?|conversations?|chats?|dialogs?|dialogues?|kv[ _-]?cache)`
	looseWords  = `(?:messages?|inputs?|tokens?|history|turns?|sequences?|requests?)`
	cannotWords = `(?:can ?not|cant|could(?: not|nt)|unable|not able|not possible|impossible|failed|failure|fails|refus(?:ed|es|ing)|no way|not enough)`
	cutWords    = `(?:truncat|trim|shift|shorten|cut\b|cutting|compress|compact|drop|evict|discard|prun|reduc|shrink|shrunk|condens|slid(?:e|ing)\b)\w*`
	cuttingOf   = `(?:truncat(?:ion|ing)|trimming|shift(?:ing)?|shortening|cutting|compress(?:ion|ing)|compact(?:ion|ing)|dropping|evict(?:ion|ing)|prun(?:ing)|reduc(?:tion|ing)|shrinking|sliding)\b`
	offWords    = `(?:not possible|impossible|disabled|not allowed|not permitted|not enabled|switched off|turned off|refused|failed|unavailable|exhausted)`
	keptSize    = `(?:as (?:large|long|big) as|at least|exceeds?|fills?|(?:greater|larger|longer|bigger|more) than|>=?|≥|equals?|equal to|and|=)`
	contextSize = `(?:\bn_?ctx|\bnum_ctx|\bctx|context)`
)

func compileTruncationRules() truncationRules {
	return truncationRules{
		kept: anyOf(
			`\b(n_?|num_?)keep\b[^.;]{0,40}?`+keptSize+`[^.;]{0,20}?`+contextSize, contextSize+`\b[^.;]{0,30}?(<=?|≤|(smaller|less) than)[^.;]{0,20}?\b(n_?|num_?)keep`,
			`\bkeep \d+ ?>=? ?(ctx|context)`,
			`\btokens? to (keep|retain|preserve)\b[^.;]{0,80}?`+keptSize+`[^.;]{0,20}?(context|window|n_?ctx)`,
			`\bkeep(ing)? the first \d+ tokens`,
			`(part|prefix|portion|prompt|beginning|head|start|messages?) (\w+ ){0,4}?(keep|kept|retained|preserved?|pinned)\b[^.;]{0,60}?`+keptSize+`[^.;]{0,20}?(context|window|n_?ctx)`,
			`\bcontext[ -]?shift(ing)? (is |was |has been |has )?(currently )?`+offWords, `\bshifting (is |was )?`+offWords,
			`(not enough|insufficient|no) (room|space|tokens) (is |are )?(left |remaining |available )?(in|for|within) (the |its )?(models? )?(context|window|prompt|input)`,
			cannotWords+` (to )?(make|free|find|gain|get) (enough |any |more )*(room|space)\b.{0,40}?(context|window|prompt|n_?ctx)`,
			`\b(?:`+promptWords+`|`+looseWords+`)(?: \w+){0,3} (?:does not|doesnt|do not|dont|will not|wont|can ?not|cant) fit\b.{0,60}?(?:context|window|n_?ctx|tokens?\b)`,
			cannotWords+` (?:\w+ ){0,2}?fit (?:\S+ ){0,4}?(?:`+promptWords+`|`+looseWords+`) (?:in|into|within|to|inside)\b.{0,40}?(?:context|window|n_?ctx|tokens?\b|spaces?)`,
			`无法(截断|裁剪|压缩|缩短|截取)[^。]{0,12}(上下文|提示|输入|对话|消息|历史)`, `(上下文|提示词|对话|输入)[^。]{0,8}无法(再)?(截断|裁剪|压缩|缩短)`,
		),
		act: anyOf(
			cannotWords+`(?: \w+){0,2}? `+cutWords,
			`\b`+cuttingOf+`(?: [\w-]+){0,7}? `+offWords, `\bnot (?:truncat|trimm|shorten|compress|reduc|shrink)\w*able\b`,
			`\b(?:nothing|none|no (?:more|further|other|\w+ (?:left|remaining)))(?: \w+){0,3}? `+cutWords,
		),
		exhausted: anyOf(`\bnothing (?:is )?(?:left|more|else|further)(?: \w+){0,2}? ` + cutWords),
		prompt:    anyOf(`\b` + promptWords + `\b`),
		loose:     anyOf(`\b` + looseWords + `\b`),
		about: anyOf(`\bfit(s|ting)?\b`, `\bfurther\b`, `\b(any ?|no )more\b`, `\b(enough|below|under|context|window|n_?ctx|spaces?|room|required|limit|left|kept|keep)\b`,
			`\d tokens\b`),
		other: anyOf(
			`\b(files?|logs?|logfiles?|strings?|columns?|tables?|rows?|fields?|databases?|disks?|volumes?|paths?|director(y|ies)|filenames?|names?|titles?|labels?|urls?|dates?|schemas?)\b`,
			`\b(param|parameter|option|setting|argument|property|key|flag)s?\b`, `\.[a-z]\w{0,3}\b`,
			`\b(request|response) bod(y|ies)\b`, `\bupload`, `\b(queue|topic|broker|connection|socket)\b`, `\b(cuda|gpu|device|memory|gzip|whitespace)\b`,
			`\bcontext (cancel|deadline)`, `\bpermission denied\b`,
		),
		asked: anyOf(
			`\btruncation\b.{0,60}(support|allow|valid|permit|accept|unknown|recogni[sz]ed)`,
			`(unknown|unsupported|unrecogni[sz]ed|invalid|unexpected)\b.{0,40}\btruncat(e|ion)\b`, `\btruncate_\w+`,
		),
		sentence: regexp.MustCompile(`[.!?;。](?:\s|$)|\n`),
		param:    regexp.MustCompile(`^truncat|_truncat|truncation`),
	}
}

// refusesToCut reports whether the error says that a prompt is too long by
// saying that it can't be cut.
func (ev *evidence) refusesToCut() bool {
	r := &rules().truncation
	if slices.ContainsFunc(ev.params, r.param.MatchString) {
		return false
	}
	return slices.ContainsFunc(ev.texts, func(t errorText) bool {
		switch {
		case r.kept.MatchString(t.norm):
			return true
		case r.asked.MatchString(t.norm):
			return false
		}
		return slices.ContainsFunc(r.sentence.Split(t.norm, -1), r.refusal)
	})
}

// refusal reports whether a sentence says that a prompt can't be cut.
func (r *truncationRules) refusal(sentence string) bool {
	switch {
	case !r.act.MatchString(sentence), r.other.MatchString(sentence):
		return false
	case r.exhausted.MatchString(sentence), r.prompt.MatchString(sentence):
		return true
	}
	return r.loose.MatchString(sentence) && r.about.MatchString(sentence)
}
