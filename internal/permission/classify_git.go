package permission

import (
	"slices"
	"strings"
)

// gitSplit takes git's own options off the arguments of git. odd says that one
// of them may make git run something else.
func gitSplit(args []string) (sub string, rest []string, odd bool) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-C":
			i++
		case a == "--no-pager", a == "--no-optional-locks", a == "--literal-pathspecs":
		case a == "-c", a == "--git-dir", a == "--work-tree", a == "--exec-path", a == "--namespace", a == "--config-env":
			odd = true
			i++
		case strings.HasPrefix(a, "-"):
			odd = true
		default:
			return a, args[i+1:], odd
		}
	}
	return "", nil, odd
}

// gitReaders only read, whatever their options, apart from those that write a
// file or run a program.
var gitReaders = []string{
	"status", "log", "diff", "show", "rev-parse", "ls-files", "ls-tree", "blame", "annotate", "describe", "shortlog",
	"cat-file", "grep", "rev-list", "merge-base", "name-rev", "for-each-ref", "count-objects", "version", "diff-tree",
	"diff-index", "diff-files", "show-ref", "whatchanged", "check-ignore", "var",
}

// gitListing are commands that only read when their first operand is one of
// the listed words. An empty word stands for no operand at all.
var gitListing = map[string][]string{
	"branch":   {""},
	"tag":      {""},
	"remote":   {"", "get-url"},
	"stash":    {"list", "show"},
	"worktree": {"list"},
	"reflog":   {"", "show"},
	"notes":    {"", "list", "show"},
	"bisect":   {"log"},
}

// gitReads reports whether a git command only reads.
func (c *classifier) gitReads(args []arg) bool {
	words := texts(args)
	sub, rest, odd := gitSplit(words)
	for _, w := range words {
		for _, bad := range []string{"--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--upload-pack", "--exec"} {
			odd = odd || strings.HasPrefix(w, bad)
		}
	}
	switch {
	case odd, slices.ContainsFunc(args, func(a arg) bool { return a.dynamic }):
		return false
	case sub == "grep" && hasShort(rest, "O"):
		return false
	case slices.Contains(gitReaders, sub):
	case sub == "branch" || sub == "tag":
		if !gitLists(rest) {
			return false
		}
	case sub == "config":
		if !slices.ContainsFunc(rest, func(w string) bool {
			return slices.Contains([]string{"--get", "--get-all", "--list", "-l", "--get-regexp", "get", "list"}, w)
		}) {
			return false
		}
	default:
		words, known := gitListing[sub]
		if !known || !slices.Contains(words, firstWord(rest)) {
			return false
		}
	}
	c.reads(args)
	return true
}

// gitLists reports whether the arguments of branch or tag only list: an
// operand makes a new one unless an option says that it is a filter.
func gitLists(args []string) bool {
	filter := false
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		switch {
		case slices.Contains([]string{"-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}, name):
			filter = true
		case slices.Contains([]string{"-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose", "--show-current", "--sort", "--format", "--color", "--no-color", "--column", "-n", "-i", "--ignore-case"}, name):
		case strings.HasPrefix(a, "-"), !filter:
			return false
		}
	}
	return true
}

func firstWord(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// gitEffect says what a git command does that is more than reading.
func gitEffect(args []string) effect {
	sub, rest, odd := gitSplit(args)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(rest, w) })
	}
	e := effect{what: sub + " changes the repository"}
	switch sub {
	case "":
		return effect{}
	case "push":
		e = effect{what: "push changes another repository", outside: true}
		e.dangerous = has("--force", "--mirror", "--delete", "--prune", "--all") || hasShort(rest, "fd") ||
			slices.ContainsFunc(rest, func(a string) bool {
				return strings.HasPrefix(a, "--force-with-lease") || strings.HasPrefix(a, "+") || strings.HasPrefix(a, ":")
			})
	case "reset":
		e.dangerous = has("--hard", "--merge", "--keep")
	case "checkout":
		e.dangerous = has("--", ".", "--force", "--ours", "--theirs") || hasShort(rest, "fB")
	case "switch":
		e.dangerous = has("--force", "--discard-changes") || hasShort(rest, "fC")
	case "restore":
		e.dangerous = !has("--staged", "-S") || has("--worktree", "-W")
	case "branch", "tag":
		e.dangerous = has("--delete", "--force") || hasShort(rest, "dDfM")
	case "stash":
		e.dangerous = has("drop", "clear")
	case "worktree":
		e.dangerous = has("remove", "prune")
	case "clean", "rebase", "filter-branch", "filter-repo", "gc", "prune", "update-ref", "rm":
		e.dangerous = true
	case "reflog":
		e.dangerous = has("expire", "delete")
	case "commit":
		e.dangerous = has("--amend")
	}
	if odd {
		e.what = sub + " with options that may run other programs"
		e.dangerous = true
	}
	return e
}
