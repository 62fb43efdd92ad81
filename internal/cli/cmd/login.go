package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"keen/internal/auth"
	"keen/internal/cli/repl"
	"keen/internal/config"
	"keen/internal/providers"
)

func (a *App) loginCommand() *cobra.Command {
	var device bool
	c := &cobra.Command{
		Use:   "login",
		Short: "Sign in with a ChatGPT account, for the OpenAI Codex provider",
		Long: `Login signs in with a ChatGPT account, for the provider openai-codex. It opens a
browser here; with --device it shows a code to type on another machine.

Other providers take an API key from the environment or the configuration file;
see: keen config`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			arg := ""
			if device {
				arg = "device"
			}
			show := func(text string) { _, _ = fmt.Fprintln(a.Stdout, text) }
			if err := a.login(c.Context(), arg, show); err != nil {
				return failed(err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&device, "device", false, "show a code to type on another machine")
	return c
}

func (a *App) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Forget the ChatGPT sign-in",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.logout(c.Context(), "", func(text string) { _, _ = fmt.Fprintln(a.Stdout, text) }); err != nil {
				return failed(err)
			}
			return nil
		},
	}
}

// login signs in and stores the tokens. arg "device" shows a code to type on
// another machine.
func (a *App) login(ctx context.Context, arg string, show func(string)) error {
	issuer := auth.CodexIssuer()
	var tokens auth.Tokens
	var err error
	switch arg {
	case "":
		tokens, err = auth.Login(ctx, issuer, func(address string) error {
			if openBrowser(ctx, address) == nil {
				show("Sign in in the browser that has opened. If it has not, visit:\n\n" + address)
			} else {
				show("To sign in, visit:\n\n" + address)
			}
			return nil
		})
	case "device":
		tokens, err = auth.LoginDevice(ctx, issuer, func(c auth.DeviceCode) error {
			show(fmt.Sprintf("On any machine, visit %s and type %s", c.Address, c.Code))
			return nil
		})
	default:
		return fmt.Errorf("login %s: write nothing, or \"device\" to sign in on another machine", arg)
	}
	if err != nil {
		return err
	}
	if err := a.authStore().Put(issuer.Provider, tokens); err != nil {
		return err
	}
	show("Signed in. The provider is " + issuer.Provider + ".")
	return nil
}

// logout forgets the tokens.
func (a *App) logout(_ context.Context, _ string, show func(string)) error {
	issuer := auth.CodexIssuer()
	if _, err := a.authStore().Tokens(issuer.Provider); errors.Is(err, auth.ErrNotSignedIn) {
		show("Nobody is signed in.")
		return nil
	}
	if err := a.authStore().Delete(issuer.Provider); err != nil {
		return err
	}
	show("Signed out.")
	return nil
}

// localServers finds the model servers that run on this machine.
func (a *App) localServers(ctx context.Context) []providers.LocalServer {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	return providers.DiscoverLocal(ctx, nil, providers.DefaultPorts())
}

// setup lists the ways to a model when none is configured: keys in the
// environment, servers that run here, a sign-in.
func (s *screen) setup(ctx context.Context) []repl.SetupChoice {
	var choices []repl.SetupChoice
	use := func(name string) func(context.Context, func(string)) (repl.ModelChoice, error) {
		return func(context.Context, func(string)) (repl.ModelChoice, error) {
			choice := repl.ModelChoice{Name: name}
			return choice, s.SetChoice(choice)
		}
	}
	for _, p := range s.registry.All() {
		for _, name := range p.KeyEnv {
			if s.app.Getenv(name) != "" && p.DefaultModel != "" {
				choices = append(choices, repl.SetupChoice{Title: "Use " + p.Name, Detail: name + " is set", Apply: use(p.ID + "/" + p.DefaultModel)})
				break
			}
		}
	}
	for _, server := range s.app.localServers(ctx) {
		for _, m := range server.Models {
			choices = append(choices, repl.SetupChoice{Title: "Use " + m, Detail: "on " + server.Provider + ", which runs here", Apply: use(server.Provider + "/" + m)})
		}
	}
	codex, _ := s.registry.Lookup(auth.CodexIssuer().Provider)
	choices = append(choices, repl.SetupChoice{
		Title: "Sign in with ChatGPT", Detail: "for the OpenAI Codex provider",
		Apply: func(ctx context.Context, show func(string)) (repl.ModelChoice, error) {
			if err := s.app.login(ctx, "", show); err != nil {
				return repl.ModelChoice{}, err
			}
			choice := repl.ModelChoice{Name: codex.ID + "/" + codex.DefaultModel}
			return choice, s.SetChoice(choice)
		},
	}, repl.SetupChoice{
		Title: "Use an API key", Detail: "export ANTHROPIC_API_KEY, OPENAI_API_KEY, ... and start again",
		Apply: func(context.Context, func(string)) (repl.ModelChoice, error) {
			return repl.ModelChoice{}, fmt.Errorf("set the key of your provider in the environment or in %s, then start Keen again", config.DefaultPath())
		},
	}, repl.SetupChoice{
		Title: "Try Keen without any of it", Detail: "keen demo",
		Apply: func(context.Context, func(string)) (repl.ModelChoice, error) {
			return repl.ModelChoice{}, errors.New("leave with /exit and run: keen demo")
		},
	})
	return choices
}
