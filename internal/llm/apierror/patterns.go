package apierror

import (
	"regexp"
	"strings"
	"sync"
)

// The codes and wordings that providers use. Codes are compared squashed, so
// that ThrottlingException and throttling_exception are one; wordings are
// matched on normalised text (see normalise).

// squash reduces a code to its lower-case letters and digits.
func squash(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, bareCode(code))
}

// bareCode removes what AWS puts around the names of its exceptions.
func bareCode(code string) string {
	if i := strings.LastIndexByte(code, '#'); i >= 0 {
		code = code[i+1:]
	}
	if i := strings.Index(code, ":http"); i > 0 {
		code = code[:i]
	}
	return code
}

// kindOfCode returns what a code means by itself, or the empty kind.
func kindOfCode(code string) Kind {
	c := squash(code)
	switch c {
	case "invalidapikey", "apikeyinvalid", "incorrectapikey", "authenticationerror", "invalidauthenticationerror",
		"unauthenticated", "unauthorized", "permissiondenied", "permissionerror", "unrecognizedclientexception",
		"accessdeniedexception", "expiredtokenexception", "expiredtoken", "invalidsignatureexception",
		"incompletesignatureexception", "missingauthenticationtokenexception", "tokenexpired", "tokenrevoked",
		"tokeninvalidated", "invalidtoken", "refreshtokenreused", "notauthorizedexception":
		return KindAuth
	case "insufficientquota", "usagelimitreached", "usagenotincluded", "billinghardlimitreached", "billingnotactive",
		"billingerror", "insufficientbalance", "insufficientcredits", "exceededcurrentquotaerror", "creditsexhausted",
		"paymentrequired", "arrearage", "quotaexceeded", "quotaexhausted", "servicequotaexceededexception",
		"allocationquotafreetieronly":
		return KindQuota
	case "contextlengthexceeded", "contextlengthexceedederror", "contextwindowexceeded", "contextwindowexceedederror",
		"modelcontextwindowexceeded", "contextlimitexceeded", "exceedcontextsizeerror", "maxcontextlengthexceeded",
		"modelmaxprompttokensexceeded", "tokenslimitreached", "prompttoolong", "promptistoolong", "inputtoolong",
		"inputtoolongerror":
		return KindContextOverflow
	case "ratelimitexceeded", "ratelimiterror", "ratelimited", "ratelimitreachederror", "toomanyrequests",
		"toomanyrequestsexception", "resourceexhausted", "requestlimitexceeded", "tokenquotaexceeded",
		"toomanytokenserror", "slowdown", "limitburstrate", "limitrequests":
		return KindRateLimit
	case "requesttoolarge", "requestentitytoolarge", "payloadtoolarge", "requestbodytoolarge":
		return KindPayloadTooLarge
	case "overloadederror", "engineoverloadederror", "serverisoverloaded", "serveroverloaded", "servererror",
		"internalerror", "internalservererror", "internalserverexception", "internalfailure", "internal", "apierror",
		"serviceunavailable", "serviceunavailableerror", "serviceunavailableexception", "unavailable", "timeouterror",
		"requesttimeout", "gatewaytimeout", "deadlineexceeded", "modeltimeoutexception", "modelstreamerrorexception",
		"modelerrorexception", "modelnotreadyexception", "apiconnectionerror", "upstreamerror", "streamerror":
		return KindTransient
	}
	if strings.HasPrefix(c, "throttling") {
		return KindRateLimit
	}
	return ""
}

// isGenericCode reports whether a code is the name of a whole class of errors
// or of the envelope.
func isGenericCode(code string) bool {
	switch squash(code) {
	case "error", "invalidrequesterror", "badrequesterror", "badrequest", "invalidargument", "invalidparameter",
		"validationexception", "requesterror", "responsefailed", "failed", "":
		return true
	}
	return false
}

// ruleSet is the compiled wordings. It is never changed.
type ruleSet struct {
	auth, quota, currentQuota, noQuota, deadline, overloaded *regexp.Regexp
	rate, tokenRate, requestRate, anyTokens                  *regexp.Regexp
	permanent, payload, overflow                             *regexp.Regexp
	transient, forbidden, contentParam                       *regexp.Regexp
	statusText, thousands, htmlTitle, htmlTag                *regexp.Regexp
	missingModel, contentFilter, exclusive                   *regexp.Regexp
	truncation                                               truncationRules
	output                                                   outputRules
	wait                                                     waitRules
	numbers                                                  numberRules
}

// rules compiles the wordings once, when the first error occurs.
var rules = sync.OnceValue(func() *ruleSet {
	return &ruleSet{
		auth: anyOf(
			`(invalid|incorrect|missing|no|expired|wrong) (x-)?api[ -]?key`,
			`api[ -]?key (is |was )?(not valid|invalid|missing|expired|required|disabled)`,
			`security token included in the request is (invalid|expired)`,
		),
		quota: anyOf(
			`credit balance`, `(insufficient|not enough|out of|no) (account )?(balance|credits?|quota|funds)`,
			`more credits`, `can only afford`, `usage limits? (has been )?(reached|exceeded)`, `api usage limits`,
			`hit your (\S+ ){0,2}usage limit`, `extra usage is required`, `billing hard limit`, `key limit exceeded`,
			`reached your (\S+ ){0,2}spend(ing)? limit`, `(weekly|monthly) (\S+ )?limit`, `payment required`,
			`quota (has been |is )?(exhausted|used up)`, `account is overdue`, `in arrears`, `余额不足`, `欠费`,
		),
		currentQuota: anyOf(
			`exceeded (your|the) (\w+ ){0,2}quota`, `\bquota (limit )?(has been |was |is )?(exceeded|reached)`, `(out of|run out of|used up) (\w+ ){0,3}quota`,
			`小时的?使用上限`,
		),
		noQuota:    anyOf(`limit: 0\b`),
		deadline:   anyOf(`context deadline exceeded`, `client\.timeout`),
		overloaded: anyOf(`\boverloaded\b`),
		rate:       anyOf(`rate[ _-]?limit`, `too many requests`, `throttl`, `限流`),
		tokenRate: anyOf(
			`tokens? per (minute|min|day|hour|second)`, `\bt(pm|pd)\b`, `tokens/(min|day)`, `token rate limit`,
			`too many tokens\b.{0,40}\bwait`,
		),
		requestRate: anyOf(`requests? per (minute|min|day|hour|second)`, `\br(pm|pd|ps)\b`, `requests/(min|day)`),
		anyTokens:   anyOf(`\btokens?\b`, `_token_count`),
		// Settings of the server and limits of other interfaces, which come
		// with a status or words that suggest something else.
		permanent: anyOf(`batch size`, `tokens per request`, `more system memory`),
		payload: anyOf(
			`(request entity|payload|content|request body|message body|body) (is )?too large`, `request_too_large`,
			`request (body |payload )?(size )?exceeds the (maximum|limit|max)`, `exceeds the maximum (request |body |payload )?size`,
			`length less than or equal to \d{6}`, `(maximum|max) (request|body|payload) (body )?size`, `limit on max bytes`,
		),
		overflow:  overflowWordings(),
		transient: anyOf(transientWordings...),
		forbidden: anyOf(`country`, `region`, `location`, `moderation`, `flagged`, `content polic`, `safety`),
		contentParam: regexp.MustCompile(
			`^input$|(content|output|arguments|text|instructions)(\[\d+\])?$`),
		statusText:   regexp.MustCompile(`^(?:error code: |http(?:/[\d.]+)? |status )?([45]\d\d)\b`),
		thousands:    regexp.MustCompile(`(?:^|[^\w\[.,])\d{1,3}(?:,\d{3})+\b`),
		htmlTitle:    regexp.MustCompile(`(?is)<title[^>]*>([^<]*)`),
		htmlTag:      regexp.MustCompile(`(?is)<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>`),
		missingModel: regexp.MustCompile(`model\b.{0,120}(not found|does not exist|doesnt exist|not available|not supported|not a valid|no longer)|(unknown|invalid|no such) model|not a valid model|no endpoints found`),
		contentFilter: anyOf(
			`content management policy`, `content[ _]?(policy|filter)`, `moderation`, `flagged`, `inappropriate content`,
			`data_inspection_failed`, `safety (policy|system|reasons)`, `usage polic`),
		exclusive:  anyOf(`\(exclusive\)`),
		truncation: compileTruncationRules(),
		output:     compileOutputRules(),
		wait:       compileWaitRules(),
		numbers:    compileNumberRules(),
	}
})

// overflowWordings matches what says that the input, or input and output, does
// not fit the window.
func overflowWordings() *regexp.Regexp {
	const length = `(window|length|size|limit)s?`
	return anyOf(
		`\b(prompt|input|inputs|message|messages|conversation|request) (is |are |was )?too long\b`,
		`\bmax(imum)? context `+length,
		`exceed(s|ed|ing)? (\S+ ){0,5}?(context|token|prompt|input) `+length,
		`(prompt|input|messages) exceeds? (the )?max(imum)? (allowed )?length`,
		`(context|token) `+length+` (has been |was |is )?(exceeded|exceeds|reached)`,
		`reached (the )?(\S+ ){0,2}?context `+length, `context overflow`, `context_(length|window)_exceeded`,
		`contextwindowexceedederror`,
		`token count\b.{0,80}(exceeds?|only supports up to)\b`,
		`maximum prompt length is`,
		`reduce the length of the (\S+ )?(messages|input|prompt)`,
		`(longer|larger|greater) than the (\S+ ){0,3}?(context|model) length`,
		`range of input length`,
		`inputs tokens \+ max_new_tokens must`, `inputs must have less than \d+ tokens`,
		`(prompt|input)[ _]tokens? ?\(\d+\) (must be less|exceed)`,
		`input tokens exceed`, `input length\b.{0,40}\bexceed`, `prompt length\b.{0,40}\bexceed`,
		`context length of only`, `context (window|size|length) is (only )?\d+ tokens`,
		`too large for model with \d+`,
		maxTokensParam+`.{0,12} ?must be .{0,40}got -\d`,
		`too many (input |prompt )?tokens`, `tokens in request more than max tokens`,
		`exceed(s|ed)? max message tokens`, `tokens? (length )?exceed(s|ed)? (the )?model`,
		`input tokens \d+ (cannot|must not|can not) exceed`,
		`(prompt|input|sequence|request)( length| size)?( \S+){0,4} (greater|larger|longer|bigger|more) than (the )?(\S+ ){0,3}?(max_seq_len|max_model_len|n_ctx|context)`,
		`max tokens of \d+ exceeded`,
		`current length is \d+ while limit is \d+`, `max size: \d+ tokens`,
		`超长`, `上下文.{0,12}超`, `超.{0,12}上下文`,
	)
}

// transientWordings are for errors inside a stream, where no status helps.
var transientWordings = []string{
	`temporar(y|ily)`, `(please|you can) (try again|retry)`, `try again later`, `timed? ?out\b`, `connection (reset|refused|error|closed|lost)`,
	`upstream`, `internal (server )?error`, `bad gateway`, `service unavailable`, `unexpected eof`, `at capacity`,
	`server had an error`, `error (occurred )?while processing`, `provider (returned error|disconnected)`, `overloaded`,
}

func anyOf(alternatives ...string) *regexp.Regexp {
	return regexp.MustCompile(strings.Join(alternatives, "|"))
}

// IsOverflowStop reports whether a provider's stop reason says that the
// window was full.
func IsOverflowStop(raw string) bool {
	switch squash(raw) {
	case "modelcontextwindowexceeded", "contextwindowexceeded", "contextlengthexceeded", "contextlengthreached",
		"contextlimitexceeded", "contextoverflow", "modellength":
		return true
	}
	return false
}
