package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Unknown is shown in the place of a figure that nobody reported.
const Unknown = "unknown"

// Duration formats how long something took: "0.4s", "12s", "1m 5s", "2h 3m".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0.0s"
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	seconds := int64(d.Round(time.Second) / time.Second)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm %ds", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%dh %dm", seconds/3600, seconds%3600/60)
}

// Elapsed formats a running time in whole seconds, so that it does not flicker:
// "0s", "12s", "1m 5s".
func Elapsed(d time.Duration) string {
	d = d.Truncate(time.Second)
	if d < 10*time.Second {
		return strconv.FormatInt(int64(max(d, 0)/time.Second), 10) + "s"
	}
	return Duration(d)
}

// Tokens formats a count: "950", "1.2k", "12.3k", "128k", "1.5M".
func Tokens(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 99_950:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1000), ".0") + "k"
	case n < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/1000)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

// Percent formats part of whole with one decimal: "12.3%". It is [Unknown]
// when whole is not positive.
func Percent(part, whole int) string {
	if whole <= 0 {
		return Unknown
	}
	return fmt.Sprintf("%.1f%%", float64(part)*100/float64(whole))
}

// Cost formats an amount in US dollars: "$0.12"; small amounts as "<$0.01".
func Cost(dollars float64) string {
	if dollars > 0 && dollars < 0.01 {
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", dollars)
}

// Age formats how long ago something was: "just now", "5m ago", "3h ago",
// "2d ago", "4mo ago", "1y ago".
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	case d < 60*day:
		return fmt.Sprintf("%dd ago", d/day)
	case d < 730*day:
		return fmt.Sprintf("%dmo ago", d/(30*day))
	}
	return fmt.Sprintf("%dy ago", d/(365*day))
}

// Path shortens the home directory at the start of a path to ~. An empty home
// shortens nothing.
func Path(path, home string) string {
	home = strings.TrimRight(home, `/\`)
	if home == "" {
		return path
	}
	rest, ok := strings.CutPrefix(path, home)
	if ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		return "~" + rest
	}
	return path
}

// plural returns "1 line" or "3 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
