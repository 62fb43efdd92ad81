package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"keen/internal/providers"
)

// Resolve decides what counts. The order is flags, KEEN_ variables, the file,
// the variables that all programs share such as OPENAI_API_KEY, the registry,
// the server, defaults. Model, base URL and key of one of these places count
// only for the provider that is named in the same place, if one is: a
// --provider on the command line is never combined with the model that the
// file names for another one, nor is a key sent to a stranger.
//
// With an error, Resolved holds what was found until there, for display. One
// that matches [ErrNotConfigured] says that something is missing.
func Resolve(ctx context.Context, in Inputs) (Resolved, error) {
	r := &resolver{in: in}
	steps := []func(context.Context) error{
		r.checkFile, r.numbers, r.provider, r.address, r.key, r.model, r.askServer, r.window, r.output, r.thinking, r.rest,
	}
	// A missing key is no reason to hide the other values from `keen config`.
	var missingKey error
	for _, step := range steps {
		err := step(ctx)
		if errors.Is(err, ErrNotConfigured) && r.out.Provider.V != "" && missingKey == nil {
			missingKey = err
			continue
		}
		if err != nil {
			return r.out, err
		}
	}
	return r.out, missingKey
}

// resolver is one run of [Resolve]. Its steps run in order and add to out.
type resolver struct {
	in  Inputs
	out Resolved
	// envWindow and envMaxOutput are the numbers in the environment.
	envWindow, envMaxOutput Value[int]
	// entry is what the file says about the provider.
	entry Provider
	// known is what the registry says about the model, if it has it.
	known    providers.Model
	hasKnown bool
	server   providers.ServerInfo
	answered bool
}

// place is one of the places in which a user may name a provider together with
// what belongs to it.
type place struct {
	provider, model, baseURL, key Value[string]
}

// places returns them, the one that counts most first.
func (r *resolver) places() []place {
	env := func(name string) Value[string] { return Value[string]{r.env(name), "environment " + name} }
	f := r.in.Flags
	return []place{
		{
			provider: Value[string]{f.Provider, "flag --provider"}, model: Value[string]{f.Model, "flag --model"},
			baseURL: Value[string]{f.BaseURL, "flag --base-url"},
		},
		{provider: env(envProvider), model: env(envModel), baseURL: env(envBaseURL), key: env(envAPIKey)},
		{
			provider: Value[string]{r.in.File.Provider, "config provider"},
			model:    Value[string]{r.in.File.Model, "config model"},
		},
	}
}

// belonging returns a value of the first place that has it and is not about
// another provider.
func (r *resolver) belonging(pick func(place) Value[string]) Value[string] {
	for _, p := range r.places() {
		if v := pick(p); v.V != "" && (p.provider.V == "" || p.provider.V == r.out.Provider.V) {
			return v
		}
	}
	return Value[string]{}
}

func (r *resolver) env(name string) string {
	if r.in.Env == nil || name == "" {
		return ""
	}
	return strings.TrimSpace(r.in.Env(name))
}

// numbers reads the numbers in the environment.
func (r *resolver) numbers(context.Context) (err error) {
	if r.envWindow, err = r.envNumber(envWindow); err != nil {
		return err
	}
	r.envMaxOutput, err = r.envNumber(envMaxOutput)
	return err
}

func (r *resolver) envNumber(name string) (Value[int], error) {
	v := Value[int]{From: "environment " + name}
	text := r.env(name)
	if text == "" {
		return v, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return v, fmt.Errorf("environment %s: %q is no number of tokens", name, text)
	}
	v.V = n
	return v, nil
}

// checkFile refuses entries for providers that do not exist.
func (r *resolver) checkFile(context.Context) error {
	if err := r.in.File.validate(); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.in.File.Providers)) {
		entry := r.in.File.Providers[id]
		if entry.Type != "" {
			if _, ok := r.in.Registry.Lookup(entry.Type); !ok {
				return fmt.Errorf("config providers.%s.type: there is no provider %q%s", id, entry.Type, r.meant(entry.Type))
			}
			continue
		}
		if _, ok := r.in.Registry.Lookup(id); !ok && entry.BaseURL == "" {
			return fmt.Errorf("config providers.%s: there is no such provider%s; one of your own needs a base_url or a type", id, r.meant(id))
		}
	}
	return nil
}

// meant is the end of a message about a provider that does not exist.
func (r *resolver) meant(name string) string {
	if p, ok := r.in.Registry.ByOtherName(name); ok {
		return "; did you mean " + p.ID + "?"
	}
	ids := slices.Sorted(maps.Keys(r.in.File.Providers))
	for _, p := range r.in.Registry.All() {
		ids = append(ids, p.ID)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == name })
	return suggestion(name, ids)
}

// provider chooses the provider.
func (r *resolver) provider(context.Context) error {
	chosen := r.named()
	if chosen.V == "" {
		chosen = r.offered()
	}
	if chosen.V == "" {
		return &NotConfiguredError{}
	}
	entry := r.in.File.Providers[chosen.V]
	preset, ok := r.preset(chosen.V, entry)
	if !ok {
		return fmt.Errorf("%s: there is no provider %q%s", chosen.From, chosen.V, r.meant(chosen.V))
	}
	r.out.Provider, r.out.Preset, r.entry = chosen, preset, entry
	return nil
}

// named is the provider that the user names. A base URL without one, in a
// place that counts more than the first with one, means a server that is in no
// table: it must not get the key of the provider named elsewhere.
func (r *resolver) named() Value[string] {
	for _, p := range r.places() {
		if p.provider.V != "" {
			return p.provider
		}
		if p.baseURL.V != "" {
			return Value[string]{providers.OpenAICompatible, p.baseURL.From}
		}
	}
	return Value[string]{}
}

// offered is the first provider that could be used: one that the file says
// something about, one the user is signed in to, one whose key is in the
// environment.
func (r *resolver) offered() Value[string] {
	entries := r.in.File.Providers
	usable := func(id string) bool {
		e := entries[id]
		return e.APIKey != "" || e.APIKeyEnv != "" || e.APIKeyHelper != "" || e.BaseURL != ""
	}
	all := r.in.Registry.All()
	for _, p := range all {
		if usable(p.ID) {
			return Value[string]{p.ID, "config providers." + p.ID}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if usable(id) {
			return Value[string]{id, "config providers." + id}
		}
	}
	for _, p := range all {
		if slices.Contains(r.in.Accounts, p.ID) {
			return Value[string]{p.ID, "signed in"}
		}
	}
	for _, p := range all {
		for _, name := range p.KeyEnv {
			if r.env(name) != "" {
				return Value[string]{p.ID, "environment " + name}
			}
		}
	}
	return Value[string]{}
}

// preset is what a provider works like. One of the user's own has the ways of
// its type, but neither its name nor its environment variables.
func (r *resolver) preset(id string, entry Provider) (providers.Provider, bool) {
	known, ok := r.in.Registry.Lookup(id)
	if ok && (entry.Type == "" || entry.Type == id) {
		return known, true
	}
	if entry.Type == "" && entry.BaseURL == "" {
		return providers.Provider{}, false
	}
	kind := entry.Type
	if kind == "" {
		kind = providers.OpenAICompatible
	}
	p, ok := r.in.Registry.Lookup(kind)
	p.ID, p.Name, p.KeyEnv, p.BaseURLEnv = id, id, nil, ""
	return p, ok
}

// address decides where requests go.
func (r *resolver) address(context.Context) error {
	p := r.out.Preset
	v := first(
		r.belonging(func(l place) Value[string] { return l.baseURL }),
		Value[string]{r.entry.BaseURL, entryField(p.ID, "base_url")},
	)
	clean := p.Address
	if v.V == "" && r.env(p.BaseURLEnv) != "" {
		v, clean = Value[string]{r.env(p.BaseURLEnv), "environment " + p.BaseURLEnv}, p.AddressFromEnv
	}
	if v.V == "" {
		v = Value[string]{p.BaseURL, fromDefault}
	}
	r.out.BaseURL = v
	if v.V == "" {
		if p.Wire == providers.WireBedrock {
			return nil
		}
		hint := ""
		if p.BaseURLEnv != "" {
			hint = ", " + p.BaseURLEnv
		}
		return missing("%s needs the address of its server: set --base-url%s or providers.%s.base_url", p.Name, hint, p.ID)
	}
	address, err := clean(v.V)
	if err != nil {
		return fmt.Errorf("%s: %w", v.From, err)
	}
	r.out.BaseURL.V = address
	return nil
}

// rest takes over what needs no decision.
func (r *resolver) rest(context.Context) error {
	r.out.Headers = maps.Clone(r.entry.Headers)
	r.out.Permissions, r.out.Retry = r.in.File.Permissions, r.in.File.Retry
	r.out.ShowThinking = first(
		Value[ShowThinking]{ShowThinking(r.env(envShow)), "environment " + envShow},
		Value[ShowThinking]{r.in.File.ShowThinking, "config show_thinking"},
		Value[ShowThinking]{ThinkingDimmed, fromDefault},
	)
	if err := r.out.ShowThinking.V.validate(); err != nil {
		return fmt.Errorf("%s: %w", r.out.ShowThinking.From, err)
	}
	if u, err := url.Parse(r.out.BaseURL.V); err == nil && u.Scheme == "http" && r.out.Credential != nil && !providers.Loopback(u.String()) {
		r.note("the key for %s is sent to %s without encryption", r.out.Preset.Name, u.Host)
	}
	return nil
}

func (r *resolver) note(format string, args ...any) {
	r.out.Notes = append(r.out.Notes, fmt.Sprintf(format, args...))
}

// redactURL hides a password in a URL.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "…"
	}
	return u.Redacted()
}
