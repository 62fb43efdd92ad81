package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"keen/internal/providers"
)

// validate refuses values that no field may have. What depends on the chosen
// provider and model is checked by [Resolve].
func (f File) validate() error {
	if err := f.ShowThinking.validate(); err != nil {
		return fmt.Errorf("show_thinking: %w", err)
	}
	if f.MaxOutputTokens < 0 || f.Retry.MaxRetries != nil && *f.Retry.MaxRetries < 0 {
		return errors.New("max_output_tokens and retry.max_retries must not be negative")
	}
	for _, id := range slices.Sorted(maps.Keys(f.Providers)) {
		if err := f.Providers[id].validate(); err != nil {
			return fmt.Errorf("providers.%s%w", id, err)
		}
	}
	return nil
}

// validate accepts the zero value too, which means the default.
func (s ShowThinking) validate() error {
	switch s {
	case "", ThinkingShown, ThinkingDimmed, ThinkingHidden:
		return nil
	}
	return fmt.Errorf("%q is not one of shown, dimmed and hidden", string(s))
}

// validate returns errors that begin with where in the provider they are.
func (p Provider) validate() error {
	var keys []string
	for _, k := range []struct{ name, value string }{
		{"api_key", p.APIKey}, {"api_key_env", p.APIKeyEnv}, {"api_key_helper", p.APIKeyHelper},
	} {
		if k.value != "" {
			keys = append(keys, k.name)
		}
	}
	if len(keys) > 1 {
		return fmt.Errorf(" has %s: keep one of them", strings.Join(keys, " and "))
	}
	for name, value := range p.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf(".headers: %q is no header", name)
		}
	}
	for name, m := range p.Models {
		if m.ContextWindow != 0 && m.ContextWindow < providers.MinContextWindow {
			return fmt.Errorf(".models.%s.context_window: %w", name, smallWindow(m.ContextWindow))
		}
		if m.MaxOutputTokens < 0 {
			return fmt.Errorf(".models.%s.max_output_tokens must not be negative", name)
		}
	}
	return nil
}

// smallWindow is the error about a window that the user set.
func smallWindow(window int) error {
	return fmt.Errorf("a context window of %s tokens is too small: Keen needs at least %s",
		thousands(window), thousands(providers.MinContextWindow))
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
