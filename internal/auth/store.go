// Package auth signs users in and keeps what they were given: at present the
// ChatGPT account that the Codex backend answers.
//
// [Login] runs a sign-in, with a browser on this machine or, through a code to
// type, with one on another. [Store] keeps tokens in one file that only the
// user can read. [Account] is the credential made of them: it renews the
// access token before it ends and once more when a server refuses it.
//
// API keys are not its business; they come from configuration and
// environment. The package opens no browser and prints nothing: it tells the
// caller what to show. Tests use a fake issuer on loopback.
package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/renameio/v2"
)

// Tokens are what an issuer gave.
type Tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token,omitempty"`
	// AccountID is the ChatGPT account, from the tokens' claims.
	AccountID string `json:"account_id,omitempty"`
	// Expires is when the access token ends; zero when nobody said.
	Expires time.Time `json:"expires,omitzero"`
}

// ErrNotSignedIn means that there are no tokens for a provider.
var ErrNotSignedIn = errors.New("not signed in; run: keen login")

// Store keeps tokens in a file, by provider. It is safe for use by several
// goroutines; between processes the last writer wins, and both read what is
// newest before they renew.
type Store struct {
	path string
	mu   sync.Mutex
}

// NewStore returns the store in a file, which need not exist.
func NewStore(path string) *Store { return &Store{path: path} }

// Tokens returns the tokens of a provider, or an error that wraps
// [ErrNotSignedIn].
func (s *Store) Tokens(provider string) (Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return Tokens{}, err
	}
	t, ok := all[provider]
	if !ok {
		return Tokens{}, fmt.Errorf("%s: %w", provider, ErrNotSignedIn)
	}
	return t, nil
}

// Put stores the tokens of a provider.
func (s *Store) Put(provider string, t Tokens) error {
	return s.change(func(all map[string]Tokens) { all[provider] = t })
}

// Delete forgets the tokens of a provider.
func (s *Store) Delete(provider string) error {
	return s.change(func(all map[string]Tokens) { delete(all, provider) })
}

func (s *Store) change(edit func(map[string]Tokens)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	edit(all)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("store tokens: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("store tokens: %w", err)
	}
	if err := renameio.WriteFile(s.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("store tokens: %w", err)
	}
	return nil
}

func (s *Store) read() (map[string]Tokens, error) {
	all := make(map[string]Tokens)
	text, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return all, nil
	case err != nil:
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read tokens from %s: %w; delete the file and sign in again", s.path, err)
	}
	return all, nil
}
