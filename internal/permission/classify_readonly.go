package permission

import (
	"regexp"
	"slices"
	"strings"

	"keen/internal/filesystem"
)

// readRule says when a command only reads.
type readRule struct {
	// long are the options that write or run something, by their beginning;
	// short the same as single letters.
	long  []string
	short string
	// operands bounds the number of operands, zero stands for any.
	operands int
	// skip says that the first operand is an expression, unless one of the
	// letters in expression gives it.
	skip       bool
	expression string
	// words says that arguments are no files at all.
	words bool
}

// readRules are the commands that only read. Their operands are looked at as
// files. Commands that have rules of their own are in readOnly.
var readRules = map[string]readRule{
	"ls": {}, "dir": {}, "cat": {}, "head": {}, "tail": {}, "wc": {}, "nl": {}, "tac": {}, "rev": {}, "cmp": {}, "diff": {},
	"stat": {}, "du": {}, "df": {}, "readlink": {}, "realpath": {}, "md5sum": {}, "sha1sum": {}, "sha256sum": {}, "sha512sum": {},
	"shasum": {}, "cksum": {}, "sum": {}, "strings": {}, "od": {}, "hexdump": {}, "base64": {}, "column": {}, "cut": {}, "fold": {},
	"fmt": {}, "expand": {}, "paste": {}, "join": {}, "comm": {}, "tsort": {}, "tr": {words: true},
	"sort": {long: []string{"--output", "--compress-program"}, short: "oT"},
	"uniq": {operands: 1},
	"xxd":  {operands: 1, short: "r"},
	"file": {long: []string{"--compile"}, short: "C"},
	"tree": {long: []string{"--output"}, short: "o"},
	"grep": grepRule, "egrep": grepRule, "fgrep": grepRule,
	"rg": {long: []string{"--pre", "--follow", "--hostname-bin", "--search-zip"}, short: "Lz", skip: true, expression: "ef"},
	"ag": {long: []string{"--follow", "--pager"}, short: "f", skip: true},
	"fd": {long: []string{"--exec", "--follow"}, short: "xXL", skip: true},

	"echo": {words: true}, "true": {words: true}, "false": {words: true}, ":": {words: true}, "seq": {words: true},
	"basename": {words: true}, "dirname": {words: true},
	"pwd": {words: true}, "whoami": {words: true}, "id": {words: true}, "uname": {words: true}, "nproc": {words: true},
	"uptime": {words: true}, "free": {words: true}, "arch": {words: true}, "tty": {words: true}, "groups": {words: true},
	"which": {words: true}, "type": {words: true}, "whereis": {words: true}, "sleep": {words: true},
	"exit": {words: true}, "return": {words: true}, "break": {words: true}, "continue": {words: true}, "shift": {words: true},
	"expr": {words: true}, "cal": {words: true}, "numfmt": {words: true},
}

var grepRule = readRule{long: []string{"--dereference-recursive"}, short: "R", skip: true, expression: "ef"}

// versionTools tell their version without doing anything.
var versionTools = []string{
	"go", "node", "npm", "pnpm", "yarn", "python", "python3", "pip", "pip3", "ruby", "java", "javac", "cargo", "rustc", "gcc", "clang",
	"make", "cmake", "docker", "git", "bash", "gofmt", "jq", "rg", "perl", "php", "deno", "bun", "kubectl", "terraform",
}

// readOnly judges a command by the rules for reading. It reports false when
// they do not cover this use of it. What it finds about files it notes.
func (c *classifier) readOnly(name string, args []arg) bool {
	words := texts(args)
	if len(words) == 1 && !args[0].dynamic && slices.Contains([]string{"--version", "-version", "-V"}, words[0]) && slices.Contains(versionTools, name) {
		return true
	}
	switch name {
	case "git":
		return c.gitReads(args)
	case "go":
		return c.goReads(args)
	case "find":
		return c.findReads(args)
	case "sed":
		return c.sedReads(args)
	case "awk", "gawk", "mawk":
		return c.awkReads(args)
	case "jq":
		// jq shows the environment by env and $ENV.
		if slices.ContainsFunc(args, func(a arg) bool {
			return a.dynamic || a.looked || strings.Contains(strings.ToLower(a.text), "env")
		}) {
			return false
		}
		return c.byRule(readRule{skip: true, expression: "fL"}, args)
	case "gofmt":
		return c.byRule(readRule{short: "w", long: []string{"-cpuprofile"}}, args)
	case "date":
		return c.dateReads(args)
	case "set":
		return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool {
			return w != "pipefail" && (len(w) < 2 || strings.Trim(w[1:], "eux"+"o") != "" || w[0] != '-' && w[0] != '+')
		})
	}
	if judged, reads := c.namesBuiltin(name, args); judged {
		return reads
	}
	rule, ok := readRules[name]
	return ok && c.byRule(rule, args)
}

func (c *classifier) byRule(rule readRule, args []arg) bool {
	words := texts(args)
	operands := 0
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") || a.text == "-" {
			operands++
		}
		for _, long := range rule.long {
			if strings.HasPrefix(a.text, long) {
				return false
			}
		}
	}
	if hasShort(words, rule.short) && rule.short != "" || rule.operands > 0 && operands > rule.operands {
		return false
	}
	if rule.words {
		c.words(args)
		return true
	}
	byOption := rule.expression != "" && (hasShort(words, rule.expression) || hasLong(words, "--regexp", "--file", "--from-file"))
	if rule.skip && !byOption {
		if i := firstOperand(args); i >= 0 {
			if a := args[i]; a.splits || a.dynamic && a.text == "" && len(rule.long)+len(rule.short) > 2 {
				// It may be an option.
				return false
			}
			c.words(args[i : i+1])
			args = slices.Delete(slices.Clone(args), i, i+1)
		}
	}
	c.reads(args)
	return true
}

func hasLong(words []string, names ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(w, n) })
	})
}

// words looks at arguments that are no files: they may still show a variable
// of the environment, or the names that a pattern matches.
func (c *classifier) words(args []arg) {
	for _, a := range args {
		switch {
		case a.environment:
			c.ask("shows a variable of the environment")
		case a.pattern:
			a.dynamic = false
			c.file(a, filesystem.AccessRead)
		}
	}
}

// goReads covers the subcommands of go that build and run nothing.
func (c *classifier) goReads(args []arg) bool {
	words := texts(args)
	if len(words) == 0 || !slices.Contains([]string{"version", "list", "vet", "env", "doc", "help"}, words[0]) {
		return false
	}
	for _, w := range words[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if strings.HasPrefix(w, "-") && slices.Contains([]string{"w", "u", "toolexec", "vettool", "overlay", "mod", "modfile", "http", "C", "fix"}, name) {
			return false
		}
	}
	c.reads(args[1:])
	return true
}

// findReads covers find without the actions that run or change something.
func (c *classifier) findReads(args []arg) bool {
	for i, a := range args {
		switch {
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a.text):
			end := i + 1
			for end < len(args) && args[end].text != ";" && args[end].text != "+" {
				end++
			}
			c.ask("runs a command on every file it finds")
			if end > i+1 {
				c.run(args[i+1 : end])
			}
		case a.text == "-delete":
			c.add(severityDangerous, "find removes files")
			c.loose = true
		case strings.HasPrefix(a.text, "-fprint"), a.text == "-fls":
			if i+1 < len(args) {
				c.file(args[i+1], filesystem.AccessWrite)
			}
		}
	}
	c.reads(args)
	return true
}

func (c *classifier) dateReads(args []arg) bool {
	previous := ""
	for _, a := range args {
		if strings.HasPrefix(a.text, "-s") || strings.HasPrefix(a.text, "--set") || a.dynamic {
			return false
		}
		if !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") && !slices.Contains([]string{"-d", "-r", "-f"}, previous) {
			return false
		}
		previous = a.text
	}
	c.reads(args)
	return true
}

// sedHarmless are the programs of sed that only print, delete or replace in
// the output. sed can also write files and run commands.
var sedHarmless = regexp.MustCompile(`^\s*(([0-9]+|\$|/([^/\\]|\\.)*/)(,([0-9]+|\$|\+[0-9]+|/([^/\\]|\\.)*/))?)?\s*([pd=q]|s/([^/\\\n]|\\[^\n])*/([^/\\\n]|\\[^\n])*/[gpI0-9]*|s\|([^|\\\n]|\\[^\n])*\|([^|\\\n]|\\[^\n])*\|[gpI0-9]*)\s*$`)

func (c *classifier) sedReads(args []arg) bool {
	var files []arg
	program := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.text == "-e" || a.text == "--expression":
			i++
			if i == len(args) || !sedProgram(args[i]) {
				return false
			}
			program = true
		case slices.Contains([]string{"-n", "-E", "-r", "-s", "-u", "-z", "-nE", "-En", "-nr", "-rn", "--quiet", "--silent", "--regexp-extended"}, a.text):
		case strings.HasPrefix(a.text, "-") && a.text != "-":
			return false
		case !program && !slices.ContainsFunc(args, func(a arg) bool { return a.text == "-e" || a.text == "--expression" }):
			if !sedProgram(a) {
				return false
			}
			program = true
		default:
			files = append(files, a)
		}
	}
	c.reads(files)
	return program
}

func sedProgram(a arg) bool {
	if a.dynamic || a.looked {
		return false
	}
	return !slices.ContainsFunc(strings.Split(a.text, ";"), func(part string) bool { return !sedHarmless.MatchString(part) })
}

// awkActs are what makes an awk program more than a filter, as far as its text
// can tell.
var awkActs = regexp.MustCompile(`system|getline|[>|@]|ENVIRON|close|fflush|ARGV`)

func (c *classifier) awkReads(args []arg) bool {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i].text, "-") {
		switch text := args[i].text; {
		case text == "-F" || text == "-v":
			i++
		case !strings.HasPrefix(text, "-F"):
			return false
		}
		i++
	}
	if i >= len(args) || args[i].dynamic || args[i].looked || awkActs.MatchString(args[i].text) {
		return false
	}
	c.words(args[:i])
	c.reads(args[i+1:])
	return true
}

// harmlessVariable reports whether setting a variable cannot make a program do
// something else. By custom the variables of a script are in lower case.
func harmlessVariable(name string) bool {
	if slices.Contains([]string{"LANG", "LANGUAGE", "TZ", "NO_COLOR", "CLICOLOR", "TERM", "COLUMNS", "LINES", "CI", "CGO_ENABLED", "GOOS", "GOARCH", "FORCE_COLOR"}, name) {
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.ToLower(name) == name
}
