package apierror

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Bounds of what is read of an error, so that a hostile or broken body costs
// little: bytes of body, bytes of one text that is searched, depth of JSON in
// JSON, bytes decoded in all, and texts kept.
const (
	maxEvidence    = 256 << 10
	maxErrorText   = 8 << 10
	maxErrorDepth  = 10
	maxErrorDecode = 1 << 20
	maxErrorTexts  = 32
	maxMessage     = 2000
)

// evidence is everything an error says, in whatever form it came.
type evidence struct {
	// status is the HTTP status, or the one that the body states when the
	// error came inside a success.
	status int
	// codes are the provider's codes and types, outermost first.
	codes  []string
	params []string
	// texts are the messages, innermost first.
	texts []errorText
	html  bool
	// promptTokens and contextTokens are the fields of llama.cpp.
	promptTokens, contextTokens int
	// wait is how long a header or a field asks to wait, now when it came.
	wait    time.Duration
	now     time.Time
	decoded int
}

// errorText is one message of an error.
type errorText struct {
	// text is as the provider wrote it, norm as the rules read it.
	text, norm string
	depth      int
}

func gatherEvidence(r Raw) *evidence {
	ev := &evidence{status: r.Status, now: r.Now}
	if ev.now.IsZero() {
		ev.now = time.Now()
	}
	ev.wait = askedByHeaders(r.Header, ev.now)
	for _, code := range []string{r.Code, r.Type} {
		ev.addCode(code)
	}
	ev.addParam(r.Param)
	ev.addText(r.Body, 0)
	if !strings.Contains(r.Body, r.Message) || len(ev.texts) == 0 {
		ev.addText(r.Message, 1)
	}
	slices.SortStableFunc(ev.texts, func(a, b errorText) int { return cmp.Compare(b.depth, a.depth) })
	if ev.status < 400 {
		ev.status = max(ev.status, ev.statedStatus())
	}
	if ev.status == http.StatusTooManyRequests {
		ev.wait = cmp.Or(ev.wait, resetByHeaders(r.Header, ev.now))
	}
	return ev
}

// addText takes in a text, and the JSON in it.
func (ev *evidence) addText(s string, depth int) {
	s = strings.TrimSpace(s)
	if s == "" || depth > maxErrorDepth || len(ev.texts) >= maxErrorTexts {
		return
	}
	if len(s) > maxEvidence {
		s = s[:maxEvidence]
	}
	if looksLikeHTML(s) {
		ev.html = true
		s = htmlText(s)
	} else if before, value, after, ok := ev.embedded(s); ok {
		ev.walk(value, depth+1)
		s = strings.TrimSpace(before + " " + after)
		if s == "" {
			return
		}
	}
	ev.texts = append(ev.texts, errorText{text: s, norm: normalise(s), depth: depth})
}

// embedded finds JSON in a text: the whole of it, or a part as gateways paste
// it into their messages, with or without the escapes of a Python literal.
func (ev *evidence) embedded(s string) (before string, value any, after string, ok bool) {
	const maxTries = 4
	at := 0
	for range maxTries {
		i := strings.IndexAny(s[at:], "{[\"")
		if i < 0 || (s[at+i] == '"' && at+i > 0) {
			return "", nil, "", false
		}
		at += i
		if value, rest, err := ev.decode(s[at:]); err == nil && isComposite(value, at) {
			return s[:at], value, rest, true
		}
		if at > 1 && s[at-1] == '\'' && s[at-2] == 'b' {
			plain := pythonEscapes().Replace(s[at:])
			if value, rest, err := ev.decode(plain); err == nil {
				return s[:at], value, rest, true
			}
		}
		at++
	}
	return "", nil, "", false
}

// isComposite says which JSON values in a text are JSON and not chance: objects,
// lists of objects, and a string that is the whole of it.
func isComposite(value any, at int) bool {
	switch v := value.(type) {
	case map[string]any:
		return true
	case []any:
		return len(v) > 0 && isComposite(v[0], 1)
	case string:
		return at == 0
	}
	return false
}

var errDecodeBudget = errors.New("too much JSON in an error")

// decode reads the JSON value at the start of s and returns what follows it.
func (ev *evidence) decode(s string) (any, string, error) {
	if ev.decoded += len(s); ev.decoded > maxErrorDecode {
		return nil, "", errDecodeBudget
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, "", err
	}
	return value, s[d.InputOffset():], nil
}

// walk reads the fields of an error that are known to say something. It does
// not look elsewhere: some servers repeat the request in their errors, and the
// user's words must not be taken for the provider's.
func (ev *evidence) walk(value any, depth int) {
	if depth > maxErrorDepth {
		return
	}
	switch v := value.(type) {
	case string:
		ev.addText(v, depth)
	case []any:
		const most = 16
		for _, item := range v[:min(len(v), most)] {
			ev.walk(item, depth)
		}
	case map[string]any:
		ev.walkObject(v, depth)
	}
}

func (ev *evidence) walkObject(v map[string]any, depth int) {
	for _, key := range []string{"code", "type", "__type", "status", "status_code", "reason", "error_code", "errorCode", "error_type", "quotaId", "quota_limit", "limit_source"} {
		switch code := v[key].(type) {
		case string:
			ev.addCode(code)
		case json.Number:
			ev.addCode(code.String())
		}
	}
	if param, ok := v["param"].(string); ok {
		ev.addParam(param)
		if strings.Contains(param, " ") {
			// Some relays put the message there.
			ev.addText(param, depth)
		}
	}
	if response, ok := v["response"].(map[string]any); ok {
		ev.walk(response["error"], depth+1)
	}
	for _, key := range []string{"message", "error_message", "errorMessage", "error_msg", "error_description", "status_msg", "msg", "title"} {
		ev.walk(v[key], depth)
	}
	for _, key := range []string{"error", "errors", "detail", "details", "metadata", "raw", "innererror", "base_resp", "violations"} {
		ev.walk(v[key], depth+1)
	}
	ev.promptTokens = cmp.Or(ev.promptTokens, intField(v, "n_prompt_tokens"))
	ev.contextTokens = cmp.Or(ev.contextTokens, intField(v, "n_ctx"))
	ev.waitField(v, ev.now)
}

func intField(v map[string]any, key string) int {
	n, _ := v[key].(json.Number)
	i, err := strconv.Atoi(n.String())
	if err != nil || i < 0 || i > maxTokenNumber {
		return 0
	}
	return i
}

func (ev *evidence) addCode(code string) {
	const longest = 100
	if code = strings.TrimSpace(code); code != "" && len(code) <= longest && !slices.Contains(ev.codes, code) {
		ev.codes = append(ev.codes, code)
	}
}

func (ev *evidence) addParam(param string) {
	if param != "" {
		ev.params = append(ev.params, strings.ToLower(param))
	}
}

// statedStatus returns the HTTP status that the error itself states: as a code
// or at the start of a text; 0 when it does not.
func (ev *evidence) statedStatus() int {
	for _, code := range ev.codes {
		if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	for _, t := range ev.texts {
		if m := rules().statusText.FindStringSubmatch(t.norm); m != nil {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return 0
}

// code returns the code that says most: the first that is more than a number
// or a name for any bad request.
func (ev *evidence) code() string {
	for _, code := range ev.codes {
		if _, err := strconv.Atoi(code); err != nil && !isGenericCode(code) {
			return bareCode(code)
		}
	}
	for _, code := range ev.codes {
		if squash(code) != "error" {
			return bareCode(code)
		}
	}
	return ""
}

// message returns the innermost text.
func (ev *evidence) message() string {
	if len(ev.texts) == 0 {
		return ""
	}
	return ev.texts[0].text
}

func (ev *evidence) matches(re *regexp.Regexp) bool {
	return slices.ContainsFunc(ev.texts, func(t errorText) bool { return re.MatchString(t.norm) })
}

// hasCode reports whether a code means kind.
func (ev *evidence) hasCode(kind Kind) bool {
	return slices.ContainsFunc(ev.codes, func(code string) bool { return kindOfCode(code) == kind })
}

// hasRawCode reports whether a code is squashed.
func (ev *evidence) hasRawCode(squashed string) bool {
	return slices.ContainsFunc(ev.codes, func(code string) bool { return squash(code) == squashed })
}

func (ev *evidence) hasContentParam() bool {
	return slices.ContainsFunc(ev.params, rules().contentParam.MatchString)
}

func (ev *evidence) saysOverloaded() bool {
	return ev.matches(rules().overloaded) ||
		slices.ContainsFunc(ev.codes, func(code string) bool { return strings.Contains(squash(code), "overloaded") })
}

// normalise makes a text easy to match: lower case, no quotes, single spaces,
// numbers without separators.
func normalise(s string) string {
	if len(s) > maxErrorText {
		s = s[:maxErrorText]
	}
	s = strings.Map(func(r rune) rune {
		switch r {
		case '\'', '"', '`', '*', '\\', '‘', '’', '“', '”':
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return rules().thousands.ReplaceAllStringFunc(s, func(number string) string {
		return number[:1] + strings.ReplaceAll(number[1:], ",", "")
	})
}

func pythonEscapes() *strings.Replacer { return strings.NewReplacer(`\'`, `'`, `\\`, `\`) }

func looksLikeHTML(s string) bool {
	const enough = 256
	head := bytes.ToLower([]byte(s[:min(len(s), enough)]))
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html")) || bytes.Contains(head, []byte("<head>"))
}

// htmlText returns the title of a page, or its text.
func htmlText(s string) string {
	if m := rules().htmlTitle.FindStringSubmatch(s); m != nil && strings.TrimSpace(m[1]) != "" {
		return strings.TrimSpace(m[1])
	}
	return strings.Join(strings.Fields(rules().htmlTag.ReplaceAllString(s, " ")), " ")
}

// clipMessage makes a provider's text fit for a line on a terminal.
func clipMessage(s string) string {
	if len(s) > 2*maxErrorText {
		s = s[:2*maxErrorText]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == unicode.ReplacementChar, unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxMessage {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:maxMessage-len(mark)], "") + mark
}
