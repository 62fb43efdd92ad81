package config

import (
	"context"
	"slices"
	"strings"

	"keen/internal/providers"
)

// key finds the secret, and for Bedrock the account it stands for.
func (r *resolver) key(context.Context) error {
	if r.out.Preset.Wire == providers.WireBedrock {
		r.out.Region = first(
			Value[string]{r.entry.Region, entryField(r.out.Provider.V, "region")},
			r.shared("AWS_REGION"), r.shared("AWS_DEFAULT_REGION"), Value[string]{"", fromDefault},
		)
		r.out.Profile = first(
			Value[string]{r.entry.Profile, entryField(r.out.Provider.V, "profile")},
			r.shared("AWS_PROFILE"), Value[string]{"", fromDefault},
		)
	}
	if r.entry.APIKeyHelper != "" && !r.overridesHelper() {
		r.out.Credential = providers.NewHelper(r.entry.APIKeyHelper)
		r.out.Key = Value[string]{"what the command prints", entryField(r.out.Provider.V, "api_key_helper")}
		return nil
	}
	secret, err := r.secret()
	if err != nil {
		return err
	}
	r.out.Key = Value[string]{Mask(secret.V), secret.From}
	if secret.V != "" {
		r.out.Credential = providers.StaticKey(secret.V)
		return nil
	}
	return r.withoutKey()
}

// overridesHelper reports whether a place that counts more than the file has a
// key.
func (r *resolver) overridesHelper() bool {
	return r.in.Flags.APIKeyEnv != "" || r.belonging(func(l place) Value[string] { return l.key }).V != ""
}

// shared is a variable that all programs share.
func (r *resolver) shared(name string) Value[string] {
	return Value[string]{r.env(name), "environment " + name}
}

// secret finds a key that is written somewhere. The variables that all
// programs share come last: what the file says is about Keen, and the server it
// names may be another one.
func (r *resolver) secret() (Value[string], error) {
	if name := r.in.Flags.APIKeyEnv; name != "" {
		v := r.env(name)
		if v == "" {
			return Value[string]{}, missing("flag --api-key-env: the environment variable %s is not set", name)
		}
		return Value[string]{v, "environment " + name + " (flag --api-key-env)"}, nil
	}
	if v := r.belonging(func(l place) Value[string] { return l.key }); v.V != "" {
		return v, nil
	}
	if name := r.entry.APIKeyEnv; name != "" {
		v := r.env(name)
		if v == "" {
			return Value[string]{}, missing("config providers.%s.api_key_env: the environment variable %s is not set", r.out.Provider.V, name)
		}
		return Value[string]{v, "environment " + name + " (" + entryField(r.out.Provider.V, "api_key_env") + ")"}, nil
	}
	candidates := []Value[string]{{r.entry.APIKey, entryField(r.out.Provider.V, "api_key")}}
	for _, name := range r.out.Preset.KeyEnv {
		candidates = append(candidates, r.shared(name))
	}
	return first(append(candidates, Value[string]{"", fromDefault})...), nil
}

// withoutKey decides whether the provider can do without a key.
func (r *resolver) withoutKey() error {
	p := r.out.Preset
	switch p.Auth {
	case providers.AuthAccount:
		if slices.Contains(r.in.Accounts, p.ID) {
			r.out.Key = Value[string]{"the account's", "signed in"}
			return nil
		}
		return missing("%s needs an account: sign in with keen login", p.Name)
	case providers.AuthAWS:
		r.out.Key = Value[string]{"AWS credentials", fromDefault}
		return nil
	case providers.AuthOptionalKey:
		return nil
	}
	if !p.OwnHost(r.out.BaseURL.V) || providers.Loopback(r.out.BaseURL.V) {
		return nil // A proxy may have the key.
	}
	hint := envAPIKey
	if len(p.KeyEnv) > 0 {
		hint = strings.Join(p.KeyEnv, " or ")
	}
	return missing("%s needs an API key: set %s, or providers.%s.api_key_helper in the configuration file", p.Name, hint, r.out.Provider.V)
}
