package auth

import (
	"context"
	"sync"
	"time"
)

// Account is the credential of a signed-in user. It is safe for concurrent
// use: several requests at once renew the tokens once.
type Account struct {
	store  *Store
	issuer Issuer
	now    func() time.Time

	mu sync.Mutex
}

// NewAccount returns the credential of the user whose tokens are in a store.
func NewAccount(store *Store, issuer Issuer) *Account {
	return &Account{store: store, issuer: issuer, now: time.Now}
}

// renewBefore is how long before its end an access token is renewed.
const renewBefore = time.Minute

// Token returns the access token, renewed when it is about to end or is the
// one that a server rejected. Another process may have renewed it already:
// what is stored counts.
func (a *Account) Token(ctx context.Context, rejected string) (string, error) {
	t, err := a.tokens(ctx, rejected)
	return t.Access, err
}

// AccountID returns the id of the ChatGPT account, which may be empty.
func (a *Account) AccountID(ctx context.Context) (string, error) {
	t, err := a.tokens(ctx, "")
	return t.AccountID, err
}

func (a *Account) tokens(ctx context.Context, rejected string) (Tokens, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, err := a.store.Tokens(a.issuer.Provider)
	if err != nil {
		return Tokens{}, err
	}
	ends := !t.Expires.IsZero() && a.now().Add(renewBefore).After(t.Expires)
	if !ends && (rejected == "" || rejected != t.Access) {
		return t, nil
	}
	fresh, err := a.issuer.refresh(ctx, t)
	if err != nil {
		return Tokens{}, err
	}
	return fresh, a.store.Put(a.issuer.Provider, fresh)
}
