package providers

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Address turns what a user wrote for a base URL into one that requests can be
// sent to: with the path that the provider's servers have when none is there,
// and without a slash at the end. It returns an error for what is no URL.
func (p Provider) Address(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return "", fmt.Errorf("the base URL %q does not work: write it like http://localhost:8080/v1", redact(text))
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the base URL %q does not work: leave out what follows the %q", redact(text), "?")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if p.Wire == WireAnthropic {
		u.Path = strings.TrimSuffix(u.Path, "/v1") // Its client adds that.
	}
	if u.Path == "" {
		u.Path = p.Path
	}
	return u.String(), nil
}

// AddressFromEnv turns the value of [Provider.BaseURLEnv] into a base URL.
// Ollama's variable names the address its server listens on, so a port may be
// missing, and 0.0.0.0 means every address of this machine.
func (p Provider) AddressFromEnv(value string) (string, error) {
	if p.ID != Ollama || strings.Contains(value, "://") {
		return p.Address(value)
	}
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		host, port = strings.Trim(value, "[]"), "11434"
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return p.Address("http://" + net.JoinHostPort(host, port))
}

// Loopback reports whether a base URL leads to this machine.
func Loopback(baseURL string) bool {
	host := hostOf(baseURL)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// hostOf returns the host of a URL in lower case, without its port.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// underParent reports whether host lies in the domain that own lies in, as
// eu.api.openai.com does with api.openai.com.
func underParent(host, own string) bool {
	_, parent, ok := strings.Cut(own, ".")
	return ok && strings.Contains(parent, ".") && strings.HasSuffix(host, "."+parent)
}

// redact removes a password from a URL for messages.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "…"
	}
	return u.Redacted()
}
