package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"keen/internal/cli/repl"
	"keen/internal/cli/repl/appstate"
	"keen/internal/cli/repl/render"
	"keen/internal/config"
	"keen/internal/filesystem"
	"keen/internal/llm"
	"keen/internal/permission"
	"keen/internal/providers"
	"keen/internal/session"
	"keen/internal/tools"
)

// interactiveFlags are the flags of `keen` itself.
type interactiveFlags struct {
	model  modelFlags
	resume string
	last   bool
	cwd    string
}

func (f *interactiveFlags) register(c *cobra.Command) {
	flags := c.Flags()
	f.model.register(flags)
	flags.StringVar(&f.resume, "resume", "", "go on with the session with this `id`, or the beginning of it")
	flags.BoolVar(&f.last, "continue", false, "go on with the latest session of the working directory")
	flags.StringVar(&f.cwd, "cwd", "", "work in this `directory`")
}

// runInteractive runs the program with a screen.
func (a *App) runInteractive(ctx context.Context, f interactiveFlags, args []string) error {
	if !a.StdinTerminal || !a.StdoutTerminal {
		return usageError(errors.New("the interactive program needs a terminal; without one use: keen run \"...\""))
	}
	dir, err := workingDir(f.cwd)
	if err != nil {
		return usageError(err)
	}
	project, err := config.NewProject(config.DefaultProjectRoot(), dir)
	if err != nil {
		return usageError(err)
	}
	store, err := session.NewStore(a.sessionRoot(), dir)
	if err != nil {
		return failed(err)
	}
	resume, err := sessionToResume(store, f)
	if err != nil {
		return usageError(err)
	}
	s := &screen{app: a, flags: f, dir: dir, project: project, registry: providers.NewRegistry()}
	if err := s.load(ctx); err != nil {
		return usageError(err)
	}
	o := s.options(store, resume, strings.Join(args, " "))
	if err := repl.Run(ctx, o, a.Stdin, a.Stdout); err != nil {
		return failed(err)
	}
	return nil
}

func sessionToResume(store *session.Store, f interactiveFlags) (string, error) {
	switch {
	case f.resume != "":
		return store.Find(f.resume)
	case f.last:
		info, err := store.Latest()
		return info.ID, err
	}
	return "", nil
}

// screen holds what the interactive program asks for while it runs. It
// implements repl.Config.
type screen struct {
	app     *App
	flags   interactiveFlags
	dir     string
	project *config.Project
	// registry is kept, because it reads its models only once.
	registry *providers.Registry

	mu       sync.Mutex
	resolved config.Resolved
	// chosen is what the user chose on the screen since the start.
	chosen repl.ModelChoice
	view   config.ShowThinking
	notes  []string
	policy *permission.Policy
}

// load resolves the configuration. Nothing configured is no error: the program
// then helps to set something up.
func (s *screen) load(ctx context.Context) error {
	r, loaded, err := s.app.resolve(ctx, s.flags.model.Flags)
	if err != nil && !errors.Is(err, config.ErrNotConfigured) {
		return err
	}
	permissions, err2 := projectPermissions(s.dir, r.Permissions)
	if err2 != nil {
		return err2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolved, s.view, s.notes = r, r.ShowThinking.V, slices.Concat(loaded.Warnings, r.Notes)
	s.policy = permission.NewPolicy(permission.PolicyOptions{AllowTools: permissions.Allow, Patterns: permissions.AllowPatterns})
	if err == nil {
		s.chosen = repl.ModelChoice{Name: r.Provider.V + "/" + r.Model.V, Effort: r.Thinking.V}
	}
	return nil
}

func (s *screen) options(store *session.Store, resume, prompt string) repl.Options {
	guard, err := filesystem.NewGuard(s.dir, filesystem.Options{Readable: []string{spillDir()}})
	if err != nil {
		// The directory was just resolved.
		panic(err)
	}
	home, _ := os.UserHomeDir() // Without one, paths are shown whole.
	return repl.Options{
		NewClient: s.newClient,
		NewRegistry: func(approver permission.Approver) *tools.Registry {
			return tools.NewRegistry(tools.Standard(tools.Options{Dir: s.dir, Guard: guard, Approver: approver, SpillDir: spillDir()})...)
		},
		NewState: func(history []llm.Message) *appstate.AppState { return newState(s.dir, history, interactive) },
		Sessions: repl.StoredSessions{Store: store, Version: Version},
		Config:   s,
		Rules:    s.policy,
		AllowProject: func(pattern string) error {
			return s.project.Allow(config.Permissions{AllowPatterns: []string{pattern}})
		},
		ProjectAllowed: s.projectAllowed,
		Models:         s.models,
		Cost:           s.cost,
		Setup:          s.setup,
		Login:          s.app.login,
		Logout:         s.app.logout,
		History:        newPromptHistory(promptHistoryPath()),
		Files:          func(ctx context.Context) ([]string, error) { return repl.ProjectFiles(ctx, s.dir) },
		Branch:         func(context.Context) string { return gitBranch(s.dir) },
		Dir:            s.dir, Home: home, Version: Version, Environ: os.Environ(),
		Resume: resume, Prompt: prompt, Notices: s.notes,
	}
}

// newClient makes the client of a model that was chosen on the screen.
func (s *screen) newClient(ctx context.Context, choice repl.ModelChoice) (repl.Client, error) {
	flags := s.flags.model.Flags
	if provider, model, ok := strings.Cut(choice.Name, "/"); ok {
		s.mu.Lock()
		same := provider == s.resolved.Provider.V
		s.mu.Unlock()
		if !same {
			// An address or a key of one provider is nothing for another.
			flags = config.Flags{}
		}
		flags.Provider, flags.Model = provider, model
	}
	if choice.Effort != "" {
		flags.Thinking = choice.Effort
	}
	r, _, err := s.app.resolve(ctx, flags)
	if err != nil {
		return nil, err
	}
	return s.app.settingsOf(r).newClient(ctx)
}

// Choice implements repl.Config.
func (s *screen) Choice() repl.ModelChoice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chosen
}

// SetChoice implements repl.Config: the choice becomes that of the next start
// too.
func (s *screen) SetChoice(choice repl.ModelChoice) error {
	s.mu.Lock()
	s.chosen = choice
	s.mu.Unlock()
	provider, model, ok := strings.Cut(choice.Name, "/")
	return config.Update(config.DefaultPath(), func(f *config.File) {
		if ok {
			f.Provider, f.Model = provider, model
		}
		f.Thinking = choice.Effort
	})
}

// Reasoning implements repl.Config.
func (s *screen) Reasoning() render.ReasoningView {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.view {
	case config.ThinkingHidden:
		return render.ReasoningHidden
	case config.ThinkingShown:
		return render.ReasoningShown
	}
	return render.ReasoningCollapsed
}

// SetReasoning implements repl.Config.
func (s *screen) SetReasoning(view render.ReasoningView) error {
	value := map[render.ReasoningView]config.ShowThinking{
		render.ReasoningShown: config.ThinkingShown, render.ReasoningCollapsed: config.ThinkingDimmed, render.ReasoningHidden: config.ThinkingHidden,
	}[view]
	s.mu.Lock()
	s.view = value
	s.mu.Unlock()
	return config.Update(config.DefaultPath(), func(f *config.File) { f.ShowThinking = value })
}

func (s *screen) projectAllowed() []string {
	p, err := s.project.Permissions()
	if err != nil {
		return nil
	}
	return slices.Concat(p.Allow, p.AllowPatterns)
}

// models lists the models of the providers that can be used: the configured
// one first, then those with a key or an account, then what runs here.
func (s *screen) models(ctx context.Context) ([]repl.ModelInfo, error) {
	s.mu.Lock()
	current := s.resolved.Provider.V
	s.mu.Unlock()
	var list []repl.ModelInfo
	add := func(p providers.Provider) {
		for _, m := range s.registry.Models(p) {
			list = append(list, repl.ModelInfo{Name: p.ID + "/" + m.ID, Detail: windowDetail(m.ContextWindow), Efforts: m.Efforts})
		}
	}
	all := s.registry.All()
	slices.SortStableFunc(all, func(a, b providers.Provider) int {
		return boolInt(b.ID == current) - boolInt(a.ID == current)
	})
	signedIn := s.app.accounts()
	for _, p := range all {
		hasKey := slices.ContainsFunc(p.KeyEnv, func(name string) bool { return s.app.Getenv(name) != "" })
		if p.ID == current || hasKey || slices.Contains(signedIn, p.ID) {
			add(p)
		}
	}
	for _, server := range s.app.localServers(ctx) {
		for _, m := range server.Models {
			list = append(list, repl.ModelInfo{Name: server.Provider + "/" + m, Detail: "runs here"})
		}
	}
	return list, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func windowDetail(tokens int) string {
	switch {
	case tokens >= 1_000_000:
		return fmt.Sprintf("%.1fM window", float64(tokens)/1e6)
	case tokens > 0:
		return fmt.Sprintf("%dk window", tokens/1000)
	}
	return ""
}

// cost is what usage of a model costs in US dollars by the embedded prices.
func (s *screen) cost(model string, u llm.Usage) (float64, bool) {
	provider, name, ok := strings.Cut(model, "/")
	p, known := s.registry.Lookup(provider)
	if !ok || !known {
		return 0, false
	}
	m, known := s.registry.Model(p, name)
	if !known || m.PriceInput == 0 && m.PriceOutput == 0 {
		return 0, false
	}
	fresh := u.InputTokens - u.CacheReadTokens
	return (float64(fresh)*m.PriceInput + float64(u.CacheReadTokens)*m.PriceCached + float64(u.OutputTokens)*m.PriceOutput) / 1e6, true
}

// openBrowser opens an address in the user's browser, where there is one.
func openBrowser(ctx context.Context, address string) error {
	for _, opener := range []string{"xdg-open", "open"} {
		if path, err := exec.LookPath(opener); err == nil {
			return exec.CommandContext(ctx, path, address).Start() //nolint:gosec // an address of the issuer's
		}
	}
	return errors.New("no browser was found")
}
