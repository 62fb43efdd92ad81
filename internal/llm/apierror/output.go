package apierror

import "regexp"

// A request may ask for more output than the model gives. That is no overflow:
// the input fits, and a smaller limit cures it for good.

// outputRules are the wordings about the output limit.
type outputRules struct {
	// refused is said of a limit that is too large.
	refused *regexp.Regexp
	// output names it, and limited is said of it where it is refused, in
	// whatever order.
	output, limited *regexp.Regexp
	// window is said where the input counts as well, input where it may.
	window, input *regexp.Regexp
	// other is said of the parameter for other reasons.
	other *regexp.Regexp
}

// maxTokensParam matches the names of the parameter that limits the output.
const maxTokensParam = `max[ _]?(?:(?:completion[ _]?|output[ _]?|new[ _]?)?tokens|gen_len|token_?count)\b`

func compileOutputRules() outputRules {
	return outputRules{
		refused: anyOf(
			maxTokensParam+`.{0,120}?(must be|must have|should be|is too|not less|limited to|valid range|supported range|less than|greater than|between|above maximum|exceed|at most|cannot be|<=|>)`,
			`(invalid|range of) `+maxTokensParam,
			`supports (only )?(up to|at most) \d+ (completion|output) tokens`,
			`maximum (allowed )?number of (allowed )?(output|completion) tokens`,
			`maximum tokens you requested exceeds`,
		),
		output: anyOf(
			maxTokensParam, `\bnum_predict\b`, `\b(output|completion|generation|generated|response)[ _-](tokens?|length|size|limit)\b`, `\boutput of \d`,
			`\b(generate|produce|output|return|give|write) (only |at most |up to |a maximum of |no more than )*\d+ (\w+ )?tokens`, `\b(generate|produce|output|write) \(?\d+\b`,
			`\b(only|can) output \d`, `tokens (per|in (a|one|each)) (response|answer|completion|reply)`,
		),
		limited: anyOf(
			`exceed`, `\babove\b`, `beyond`, `too (large|many|high|big|long)`, `(more|greater|larger|higher|bigger|longer|less|lower) than`, `or less\b`, `at most`, `up to`,
			`\bmax(imum)?\b`, `\bonly\b`, `\brange\b`, `\blimit(ed)?\b`, `<=?`, `>`, `超`, `范围`, `非法`, `不能`,
		),
		// A text about output that states the window is about both.
		window: anyOf(
			`context (length|window|size|limit)`, `(input|inputs|prompt) tokens`, `max_seq_len`, `max tokens of \d+ exceeded`,
			maxTokensParam+`.{0,12} ?must be .{0,40}got -\d`,
		),
		input: anyOf(`\b(prompts?|inputs?|messages?|conversation|history|context|total)\b`),
		other: anyOf(
			`stream ?= ?true`, `must (be|have|use|set) stream`, `streaming is required`,
			`(valid|be an?|expected( an?)?|type) (integer|number)`, `got an? (string|float|boolean|null|list|object)`,
			`(unsupported|unknown|unrecogni[sz]ed|unexpected) (parameter|field|argument|option)`, `deprecated`, `is required`, `\bboth\b`, `is not supported with`,
		),
	}
}

// refusesOutput reports whether the error says that the output limit of the
// request is too large.
func (ev *evidence) refusesOutput() bool {
	r := &rules().output
	if ev.matches(r.other) {
		return false
	}
	if ev.matches(r.refused) && !ev.matches(r.window) {
		return true
	}
	return ev.matches(r.output) && ev.matches(r.limited) && !ev.matches(r.window) && !ev.matches(r.input)
}
