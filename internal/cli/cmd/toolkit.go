package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"keen/internal/cli/repl/appstate"
	"keen/internal/filesystem"
	"keen/internal/llm"
	"keen/internal/permission"
	"keen/internal/session"
	"keen/internal/tools"
)

// toolkitOptions says what tools may do.
type toolkitOptions struct {
	dir string
	// allow are tools, patterns what is allowed of some.
	allow, patterns []string
	yes             bool
}

// toolkit is the tools of a run with the policy that guards them.
type toolkit struct {
	registry *tools.Registry
	policy   *permission.Policy
}

// newToolkit makes the standard tools. It refuses names of tools that there
// are not, because a misspelt --allow would be noticed hours later.
func newToolkit(o toolkitOptions) (*toolkit, error) {
	spill := spillDir()
	guard, err := filesystem.NewGuard(o.dir, filesystem.Options{Readable: []string{spill}})
	if err != nil {
		return nil, err
	}
	policy := permission.NewPolicy(permission.PolicyOptions{AllowTools: o.allow, AllowAll: o.yes, Patterns: o.patterns})
	registry := tools.NewRegistry(tools.Standard(tools.Options{Dir: o.dir, Guard: guard, Approver: policy, SpillDir: spill})...)
	for _, name := range o.allow {
		if !hasTool(registry, name) {
			return nil, fmt.Errorf("--allow %s: there is no such tool; the tools are %s", name, strings.Join(toolNames(registry), ", "))
		}
	}
	return &toolkit{registry: registry, policy: policy}, nil
}

func toolNames(r *tools.Registry) []string {
	var names []string
	for _, s := range r.Specs() {
		names = append(names, s.Name)
	}
	return names
}

func hasTool(r *tools.Registry, name string) bool {
	for _, n := range toolNames(r) {
		if n == name {
			return true
		}
	}
	return false
}

// frontEnd says who follows the turn.
type frontEnd int

const (
	headless frontEnd = iota
	interactive
)

// newState makes the application state of a session.
func newState(dir string, history []llm.Message, front frontEnd) *appstate.AppState {
	return appstate.New(llm.BuildSystemPrompt(llm.SystemPromptOptions{
		WorkingDirectory: dir, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now(), GitBranch: gitBranch(dir),
		Instructions: projectInstructions(dir), Headless: front == headless,
	}), history)
}

// instructionFiles are the names of project instructions; the first that is
// found counts in each directory.
var instructionFiles = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}

// projectInstructions reads the instructions for agents in the working
// directory and above, up to the root of the repository, the outermost first.
func projectInstructions(dir string) []llm.ProjectInstructions {
	var found []llm.ProjectInstructions
	for {
		for _, name := range instructionFiles {
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path) //nolint:gosec // the user's own repository
			if err == nil && len(text) > 0 {
				found = append([]llm.ProjectInstructions{{Path: path, Text: string(text)}}, found...)
				break
			}
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return found
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return found
		}
		dir = parent
	}
}

// gitBranch returns the branch that is checked out, or nothing.
func gitBranch(dir string) string {
	out, err := exec.Command("git", "-C", dir, "branch", "--show-current").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// sessionRoot is where sessions are kept.
func (a *App) sessionRoot() string { return session.DefaultRoot() }
