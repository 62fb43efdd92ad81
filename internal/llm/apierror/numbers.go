package apierror

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// maxTokenNumber is the largest number that is taken for tokens.
const maxTokenNumber = 1_000_000_000

// numberRules find token numbers in normalised texts. Rules of one list are
// tried in order, from the exact to the general.
type numberRules struct {
	overflow, maxOutput, quota, rate, other numberRule
	// inputs and outputs find the parts of an overflowing request.
	inputs, outputs *regexp.Regexp
}

type numberRule struct{ used, limit []*regexp.Regexp }

// compileNumberRules writes # for a number.
func compileNumberRules() numberRules {
	return numberRules{
		overflow: numberRule{
			used: compileNumbers(
				`n_?keep(?: is| was| of)?\W{1,4}#`, `keep #`, `to keep \(#\)`, `keep\w* \(#\)`, `first # tokens`, `from # (?:tokens )?(?:down )?to (?:\w+ ){0,2}?\d+`, `current(?:ly)?:? (?:\w+ ){0,2}?#`,
				`requested (?:about |a total of |up to )?# tokens`, `total of (?:at least )?#`, `resulted in # tokens`,
				`too long:? \(?#`, `model: # tokens`, `token count:? (?:is |of )?\(?#`, `(?:contains|has) # tokens`, `requested: #`,
				`tokens \(#\)`, `length \(?(?:of )?# (?:tokens )?\)?exceed`, `(?:request|input|prompt) \(# tokens`, `length \(#`, `\(length #`,
				`(?:prompt|input|request) is # tokens`, `current length is #`, `received #`, `input tokens #`,
				`length #`, `# > #`,
			),
			limit: compileNumbers(
				`\d+ \+ \d+ > #`, `> # maximum`, `n_?ctx(?: is| was| of)?\W{1,4}#`, `[>=] (?:ctx|context) \(?#`, `as the (?:context|window) \(#`,
				`context (?:length|window|size|limit)(?: limit)?(?: is| of|:)?(?: only| at most)? \(?#`,
				`max(?:imum)? (?:(?:allowed|supported|input|prompt|model|sequence|token) )+(?:length|size|limit|tokens)(?: is| of|:)? \(?#`,
				`maximum number of tokens allowed \(#`, `model maximum \(#`, `max_seq_len \(?#`,
				`model token limit: #`, `# maximum context`, `model limit \(# tokens`,
				`limit(?: of| is|:)? #`, `(?:up to|at most) #`, `should be \[\d+, ?#\]`,
				`<= #`, `(?:can|must|may|should)(?:not| not) exceed (?:the total tokens limit )?#`, `less than # tokens`,
				`max size: #`, `max tokens of #`, `\d > #`,
				`(?:required|requested|available|target|remaining)(?: \w+){0,3}? \(?#(?: tokens|\)|$)`, `(?:down to|fit|to|below|under|within|into) (?:\w+ ){0,3}?\(?# tokens`,
			),
		},
		maxOutput: numberRule{
			used: compileNumbers(
				`too large: #`, `(?:but |whereas you )?(?:got|provided) #`, `current value: #`, maxTokensParam+`: # (?:>|is not)`,
				`value of #`, maxTokensParam+`=#`, maxTokensParam+` \(#\)`, `(?:set to|received|given:|asked for|requested:?) #`, `# were requested`,
				`tokens \(#\) (?:is |are )?(?:exceed|above|more|greater|larger)`, `(?:output|completion|size) of #`, `requested #`, `: # (?:is|exceeds)`,
			),
			limit: compileNumbers(
				`(?:at most|up to) #`, `\[\d+, ?#\]`, `<= #`, `(?:less|lower)(?: than)? or equal to #`, `between \d+ and #`, `> #`, `\d+ ?/ ?#`,
				`limit (?:of|is) #`, `max_total_tokens=#`, `(?:cannot|not) exceed #`, `range is from \d+ (?:\(\w+\) )?to #`, `(?:allowed|range):? \d+ ?- ?#`,
				`maximum(?: \w+){0,6}:? \(?#`, `(?:limited to|allowed:?|max limit|no more than) #`, `only (?:\w+ ){0,2}#`, `(?:larger|higher|greater|more|bigger) than #`,
				`can (?:generate|produce|output|return|give|write) \(?#`, `limit:? \(?#`, `\b# or less`,
			),
		},
		quota: numberRule{
			used:  compileNumbers(`requested up to # tokens, but can only afford`, `tokens limit exceeded: # >`),
			limit: compileNumbers(`tokens, but can only afford #`, `tokens limit exceeded: \d+ > #`),
		},
		rate: numberRule{
			used:  compileNumbers(`limit:? \d+, requested:? #`),
			limit: compileNumbers(`limit:? #, requested`),
		},
		other: numberRule{
			used:  compileNumbers(`requested # tokens, max \d+ tokens per request`),
			limit: compileNumbers(`max # tokens per request`),
		},
		inputs: compileNumber(`# (?:tokens )?(?:in the (?:messages|functions|tools|prompt|input)|from the (?:input )?(?:messages|prompt)|of (?:\w+ )?input)\b` +
			`|# inputs? tokens|# \+ \d+ >`),
		outputs: compileNumber(`# (?:tokens )?(?:in the (?:completion|output)|for the completion|of output)\b|# (?:output|completion) tokens` +
			`|# ` + maxTokensParam + `|` + maxTokensParam + `(?: is too large)?: #|\d \+ # >`),
	}
}

func compileNumbers(patterns ...string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, 0, len(patterns))
	for _, p := range patterns {
		compiled = append(compiled, compileNumber(p))
	}
	return compiled
}

func compileNumber(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(pattern, "#", `(?P<n>\d{1,10})\b`))
}

// takeNumbers fills in the token counts that the error states.
func (e *Error) takeNumbers(ev *evidence) {
	n := rules().numbers
	var rule numberRule
	switch e.Kind {
	case KindContextOverflow:
		rule = n.overflow
	case KindMaxOutput:
		rule = n.maxOutput
	case KindQuota:
		rule = n.quota
	case KindRateLimitTokens:
		rule = n.rate
	case KindOther:
		rule = n.other
	default:
		return
	}
	for _, t := range ev.texts {
		e.Used, e.Limit = firstNumber(rule.used, t.norm), firstNumber(rule.limit, t.norm)
		if e.Kind == KindContextOverflow {
			e.Input, e.Output = sumNumbers(n.inputs, t.norm), sumNumbers(n.outputs, t.norm)
			if e.Input > 0 && e.Used == 0 || e.Used < e.Input+e.Output && e.Output > 0 && e.Input > 0 {
				e.Used = e.Input + e.Output
			}
		}
		if e.Used > 0 || e.Limit > 0 {
			break
		}
	}
	if e.Kind == KindContextOverflow {
		e.Used, e.Limit = cmp.Or(ev.promptTokens, e.Used), cmp.Or(ev.contextTokens, e.Limit)
	}
	if e.Kind == KindMaxOutput && e.Limit > 0 && ev.matches(rules().exclusive) {
		e.Limit--
	}
}

// firstNumber returns the number of the first pattern that matches, or 0.
func firstNumber(list []*regexp.Regexp, text string) int {
	for _, re := range list {
		if m := re.FindStringSubmatch(text); m != nil {
			if n := tokenNumber(re, m); n > 0 {
				return n
			}
		}
	}
	return 0
}

// sumNumbers adds up every match.
func sumNumbers(re *regexp.Regexp, text string) int {
	sum := 0
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		sum = min(sum+tokenNumber(re, m), maxTokenNumber)
	}
	return sum
}

// tokenNumber reads the number of a match; it is 0 when that is no count of
// tokens.
func tokenNumber(re *regexp.Regexp, match []string) int {
	for i, name := range re.SubexpNames() {
		if name != "n" || match[i] == "" {
			continue
		}
		if n, err := strconv.Atoi(match[i]); err == nil && n <= maxTokenNumber {
			return n
		}
	}
	return 0
}
