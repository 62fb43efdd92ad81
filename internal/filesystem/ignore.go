package filesystem

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// maxIgnoreFile bounds what is read of one ignore file, in bytes.
const maxIgnoreFile = 1 << 20

// rule is one line of an ignore file. The matcher of go-git also matches what
// lies below a matching directory. The walk decides about every directory
// before it enters it, so here a rule speaks about the entry alone; otherwise
// "!*/" would bring back every file of every directory.
type rule struct {
	pattern gitignore.Pattern
	domain  []string
	// nameOnly rules have no slash: they are about the last component.
	nameOnly bool
	// deep rules end in "/**": they are about everything below what pattern
	// matches.
	deep bool
	// dirOnly rules are about directories.
	dirOnly bool
}

// match says what the rule means for the entry at path, the components below
// the top of the walk's repository.
func (r rule) match(path []string, isDir bool) gitignore.MatchResult {
	if len(path) <= len(r.domain) || r.dirOnly && !isDir {
		return gitignore.NoMatch
	}
	if r.nameOnly {
		short := append(append(make([]string, 0, len(r.domain)+1), path[:len(r.domain)]...), path[len(path)-1])
		return r.pattern.Match(short, isDir)
	}
	parent := path[:len(path)-1]
	if r.deep {
		return r.pattern.Match(parent, true)
	}
	if r.pattern.Match(parent, true) != gitignore.NoMatch {
		return gitignore.NoMatch
	}
	return r.pattern.Match(path, isDir)
}

// ignored applies rules, the strongest last.
func ignored(rules []rule, path []string, isDir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if m := rules[i].match(path, isDir); m != gitignore.NoMatch {
			return m == gitignore.Exclude
		}
	}
	return false
}

// readRules returns the rules of an ignore file that speaks about the
// directory at domain. A file that is missing or cannot be read has none.
func readRules(file string, domain []string) []rule {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var rules []rule
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	lines.Buffer(nil, maxIgnoreFile)
	for lines.Scan() {
		line := lines.Text()
		bare := strings.TrimSpace(line)
		if bare == "" || bare == "/" || strings.HasPrefix(line, "#") {
			continue
		}
		rules = append(rules, parseRule(line, domain))
	}
	return rules
}

// parseRule reads one line that holds a rule.
func parseRule(line string, domain []string) rule {
	body, include := strings.CutPrefix(line, "!")
	if !strings.HasSuffix(body, `\ `) {
		body = strings.TrimRight(body, " ")
	}
	r := rule{domain: domain}
	body, r.dirOnly = strings.CutSuffix(body, "/")
	if above, deep := strings.CutSuffix(body, "/**"); deep && above != "" {
		r.deep = true
		body = "/" + strings.TrimPrefix(above, "/")
	}
	// At any depth is what a name alone means already.
	if name, deep := strings.CutPrefix(body, "**/"); deep && !strings.Contains(name, "/") {
		body = name
	}
	r.nameOnly = !strings.Contains(body, "/")
	if include {
		body = "!" + body
	}
	r.pattern = gitignore.ParsePattern(body, domain)
	return r
}

// rulesAbove returns the top of the repository that holds dir, and the rules
// that hold in dir and come from above it. Outside a repository the top is dir
// itself.
func rulesAbove(dir string) (top string, rules []rule) {
	top = repositoryTop(dir)
	if top == "" {
		return dir, nil
	}
	rules = readRules(filepath.Join(top, ".git", "info", "exclude"), nil)
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return dir, nil
	}
	path := splitPath(rel)
	for depth := range path {
		file := filepath.Join(top, filepath.Join(path[:depth]...), ".gitignore")
		rules = append(rules, readRules(file, path[:depth:depth])...)
		if ignored(rules, path[:depth+1], true) {
			// Somebody asked for an ignored directory by name. What
			// excluded it must not exclude its content.
			return dir, nil
		}
	}
	return top, rules
}

// repositoryTop returns the nearest directory at or above dir that holds a
// .git, or the empty string.
func repositoryTop(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
