package permission

import (
	"os"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of looking at what a file name pattern matches.
const (
	maxGlobMatches = 2000
	maxGlobEntries = 50_000
)

// expandPattern returns the paths that a pattern of the shell matches now,
// each the way the shell would write it. It reports false when there is too
// much to look at. "**" is "*", as in bash by default.
func expandPattern(dir, pattern string) (matches []string, complete bool) {
	at := []string{strings.TrimSuffix(dir, "/")}
	if strings.HasPrefix(pattern, "/") {
		at = []string{""}
	}
	entries := 0
	for _, part := range strings.Split(pattern, "/") {
		if part == "" {
			continue
		}
		var next []string
		for _, base := range at {
			if !strings.ContainsAny(part, "*?[{") {
				next = append(next, base+"/"+part)
				continue
			}
			list, err := os.ReadDir(base + "/")
			if err != nil {
				continue
			}
			entries += len(list)
			for _, e := range list {
				hidden := strings.HasPrefix(e.Name(), ".") && part[0] != '.' && part[0] != '{'
				if ok, err := doublestar.Match(part, e.Name()); err == nil && ok && !hidden {
					next = append(next, base+"/"+e.Name())
				}
			}
			if entries > maxGlobEntries || len(next) > maxGlobMatches {
				return nil, false
			}
		}
		at = next
	}
	return at, true
}
