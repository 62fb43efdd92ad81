package apierror

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a server can ask for.
const maxRetryAfter = 365 * 24 * time.Hour

// askedByHeaders returns how long the headers of an answer ask to wait:
// retry-after-ms, or Retry-After as seconds or as a date. It returns 0 when they
// do not, or when that time is over.
func askedByHeaders(h http.Header, now time.Time) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d := seconds(h.Get(name), time.Millisecond); d > 0 {
			return d
		}
	}
	return until(h.Get("Retry-After"), now)
}

// resetByHeaders returns when the limit is reset of which nothing remains, the
// last one where there are several: X-Ratelimit-Reset-Tokens,
// Anthropic-Ratelimit-Tokens-Reset, Ratelimit-Reset and their like. Many
// providers send them with every answer.
func resetByHeaders(h http.Header, now time.Time) time.Duration {
	var last time.Duration
	for name := range h {
		lower := strings.ToLower(name)
		if !strings.Contains(lower, "ratelimit") || !strings.Contains(lower, "reset") {
			continue
		}
		if left := h.Get(strings.Replace(lower, "reset", "remaining", 1)); left == "" || left == "0" {
			last = max(last, until(h.Get(name), now))
		}
	}
	return last
}

// until reads a point in time or a span: seconds, a span with units, a date, or
// seconds or milliseconds since 1970.
func until(value string, now time.Time) time.Duration {
	const (
		epochSeconds = 1e9 // More seconds than that are no span.
		epochMillis  = 1e12
	)
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		switch {
		case n >= epochMillis && n < epochMillis*10:
			return bounded(time.UnixMilli(int64(n)).Sub(now))
		case n >= epochSeconds && n < epochSeconds*10:
			return bounded(time.Unix(int64(n), 0).Sub(now))
		}
		return seconds(value, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return bounded(at.Sub(now))
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return bounded(at.Sub(now))
	}
	if rules().wait.onlySpan.MatchString(value) {
		return parseSpan(value)
	}
	return 0
}

func bounded(d time.Duration) time.Duration { return min(max(0, d), maxRetryAfter) }

// seconds reads a number of units, 0 when it is none or not positive.
func seconds(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	if n >= float64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(math.Round(n * float64(unit)))
}

// waitField takes in the fields of an object that say how long to wait.
func (ev *evidence) waitField(v map[string]any, now time.Time) {
	for _, key := range []string{
		"retryDelay", "retry_delay", "retry_after", "retryAfter", "retry-after", "retry_after_seconds", "retryAfterSeconds",
		"resets_in_seconds", "reset_after", "retry_in", "wait_seconds", "reset_at", "resets_at", "reset_time",
	} {
		ev.wait = cmp.Or(ev.wait, until(scalar(v[key]), now))
	}
	for _, key := range []string{"retry_after_ms", "retryAfterMs", "retry_delay_ms"} {
		ev.wait = cmp.Or(ev.wait, seconds(scalar(v[key]), time.Millisecond))
	}
	if fields, ok := v["headers"].(map[string]any); ok {
		header := http.Header{}
		for name, value := range fields {
			header.Set(name, scalar(value))
		}
		ev.wait = cmp.Or(ev.wait, askedByHeaders(header, now), resetByHeaders(header, now))
	}
}

// scalar is the text of a JSON string or number.
func scalar(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// waitRules find what texts say about waiting.
type waitRules struct {
	// asks is a wish to wait with a span behind it, at one until a point in
	// time; later is a span in Chinese.
	asks, at, later *regexp.Regexp
	// span is one number with its unit, onlySpan nothing but such.
	span, onlySpan *regexp.Regexp
	// periods are the spans that limits count by, the longest first.
	periods []periodRule
	// states is said of a limit that is reached, denies of one that is not.
	states, denies *regexp.Regexp
}

type periodRule struct {
	period Period
	names  *regexp.Regexp
}

func compileWaitRules() waitRules {
	const span = `((?:\d+(?:\.\d+)? ?[a-z]*,? ?(?:and )?)+)`
	return waitRules{
		asks: regexp.MustCompile(`(?:try(?:ing)?(?: \w+){0,3}? again|retry(?:ing)?(?: \w+){0,3}?|available(?: again)?|allowed|come back|resets?|wait(?:ing)?(?: for)?|back off|cool ?down)` +
			`(?:[ -](?:in|after|for|at least|about|approximately|another|up to):?)* ` + span),
		at:       regexp.MustCompile(`\b(?:at|until|after|on|resets?) (\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d))`),
		later:    regexp.MustCompile(`(\d+(?:\.\d+)?) ?(毫秒|秒|分钟|小时|天)(?:钟)?(?:之|以)?后`),
		span:     regexp.MustCompile(`(\d+(?:\.\d+)?) ?([a-z]*)`),
		onlySpan: regexp.MustCompile(`^(?:\d+(?:\.\d+)? ?[a-zA-Z]+ ?)+$`),
		periods: []periodRule{
			{PeriodMonth, anyOf(`per[ _-]?month`, `/ ?month`, `monthly`, `(this|of the|a|current) month\b`, `每月`, `本月`)},
			{PeriodWeek, anyOf(`per[ _-]?week`, `/ ?week`, `weekly`, `(this|of the|a|current) week\b`, `每周`, `本周`)},
			{PeriodDay, anyOf(`per[ _-]?day`, `/ ?day`, `daily`, `\b[rt]pd\b`, `byday\b`, `per 86400 ?s`, `(of the|a|one) day\b`, `for today`, `每日`, `每天`, `今日`)},
			{PeriodHour, anyOf(`per[ _-]?hour`, `/ ?h(ou)?r\b`, `hourly`, `\b\d+[ -]?hours?\b.{0,20}limit`, `小时的`, `每小时`)},
			{PeriodMinute, anyOf(`per[ _-]?min(ute)?`, `/ ?min(ute)?\b`, `\b(r|t|q|it|ot)pm\b`, `minutely`, `a minute\b`, `per 60 ?s`, `每分钟`)},
		},
		states: anyOf(`exceed`, `reach`, `limit`, `quota`, `too many`, `\bhit\b`, `exhaust`, `used up`, `run out`, `\bover\b`, `allowance`, `超`, `上限`, `限`),
		denies: anyOf(`\bnot (yet |been )?(reached|exceeded|affected|hit|used up)`, `unaffected`, `\balso allows`, `remains`),
	}
}

// retryAfter returns how long the server asks to wait: what a header or a field
// says, else the text.
func (ev *evidence) retryAfter() time.Duration {
	if ev.wait > 0 {
		return ev.wait
	}
	for _, t := range ev.texts {
		if d := saidWait(t.norm, ev.now); d > 0 {
			return d
		}
	}
	return 0
}

func saidWait(text string, now time.Time) time.Duration {
	for _, m := range rules().wait.asks.FindAllStringSubmatchIndex(text, -1) {
		if end := m[3]; end < len(text) && (text[end] == '-' || text[end] == ':' || text[end] == '/') {
			continue // A date or a time of day.
		}
		if d := parseSpan(text[m[2]:m[3]]); d > 0 {
			return d
		}
	}
	if m := rules().wait.at.FindStringSubmatch(text); m != nil {
		return until(strings.ToUpper(m[1]), now)
	}
	if m := rules().wait.later.FindStringSubmatch(text); m != nil {
		unit := map[string]time.Duration{"毫秒": time.Millisecond, "秒": time.Second, "分钟": time.Minute, "小时": time.Hour, "天": 24 * time.Hour}
		return seconds(m[1], unit[m[2]])
	}
	return 0
}

// parseSpan reads "18.642s", "1m2.5s", "350ms", "2 minutes" and their like; a
// number alone is seconds.
func parseSpan(s string) time.Duration {
	var total time.Duration
	for _, m := range rules().wait.span.FindAllStringSubmatch(s, -1) {
		unit := time.Second
		switch {
		case strings.HasPrefix(m[2], "ms"), strings.HasPrefix(m[2], "milli"):
			unit = time.Millisecond
		case strings.HasPrefix(m[2], "m"):
			unit = time.Minute
		case strings.HasPrefix(m[2], "h"):
			unit = time.Hour
		case strings.HasPrefix(m[2], "d"):
			unit = 24 * time.Hour
		}
		total = min(total+seconds(m[1], unit), maxRetryAfter)
	}
	return total
}

// period returns the span that the limit counts by, empty where the error does
// not say. Codes come first. Of the spans in a text the first counts that is
// said of the limit that was reached: many texts go on about other plans.
func (ev *evidence) period() Period {
	for _, r := range rules().wait.periods {
		name := "per" + string(r.period)
		for _, code := range ev.codes {
			if c := squash(code); strings.Contains(c, name) || r.period == PeriodDay && (strings.Contains(c, "daily") || strings.HasSuffix(c, "byday")) {
				return r.period
			}
		}
	}
	for _, t := range ev.texts {
		var general Period
		for _, sentence := range rules().truncation.sentence.Split(t.norm, -1) {
			p := firstPeriod(sentence)
			if p != "" && rules().wait.states.MatchString(sentence) && !rules().wait.denies.MatchString(sentence) {
				return p
			}
			general = cmp.Or(general, p)
		}
		if general != "" {
			return general
		}
	}
	return ""
}

// firstPeriod returns the span that a text names first.
func firstPeriod(text string) Period {
	first, at := Period(""), len(text)
	for _, r := range rules().wait.periods {
		if m := r.names.FindStringIndex(text); m != nil && m[0] < at {
			first, at = r.period, m[0]
		}
	}
	return first
}
