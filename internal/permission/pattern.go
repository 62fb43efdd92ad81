package permission

import "strings"

// Matches reports whether patterns allow a request. A pattern is a tool's
// name, such as "write_file", or a command, such as "go test *": the same
// words, and with the star at the end any further ones. Every single command
// of the request must match one of the patterns. Nothing matches a request
// that is denied, dangerous, or about something outside the working directory.
func Matches(patterns []string, r Request) bool {
	if r.Verdict == VerdictDeny || r.Dangerous || r.Outside {
		return false
	}
	for _, p := range patterns {
		if strings.TrimSpace(p) == r.Tool {
			return true
		}
	}
	for _, command := range r.Commands {
		if !matchesAny(patterns, command) {
			return false
		}
	}
	return len(r.Commands) > 0
}

func matchesAny(patterns []string, command string) bool {
	for _, p := range patterns {
		words, open := strings.CutSuffix(strings.TrimSpace(p), " *")
		if words == "" {
			continue
		}
		rest, ok := strings.CutPrefix(command, words)
		if ok && (rest == "" || open && rest[0] == ' ') {
			return true
		}
	}
	return false
}
