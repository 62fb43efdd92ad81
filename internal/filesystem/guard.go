package filesystem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Access is what somebody wants to do with a file.
type Access string

// The kinds of access.
const (
	// AccessRead reads a file or lists a directory.
	AccessRead Access = "read"
	// AccessWrite creates, changes or removes it.
	AccessWrite Access = "write"
)

// Verdict is what the guard says about an access.
type Verdict string

// The verdicts.
const (
	// VerdictAllow needs no question.
	VerdictAllow Verdict = "allow"
	// VerdictAsk is for the user to decide.
	VerdictAsk Verdict = "ask"
	// VerdictDeny is not to be done, whatever the user allowed elsewhere.
	VerdictDeny Verdict = "deny"
)

// Decision is the guard's answer about one path.
type Decision struct {
	// Path is absolute and free of symbolic links. Whoever acts on the
	// decision uses it instead of the path that was asked about.
	Path string
	// Inside says that Path is the working directory or lies in it.
	Inside bool
	// Verdict says whether the access needs a question.
	Verdict Verdict
	// Reason says why, in a few words, unless it is allowed.
	Reason string
}

// Options are the settings of a [Guard].
type Options struct {
	// Home stands for "~"; empty means the user's home directory.
	Home string
	// Readable are directories outside the working directory that may be
	// read without a question, such as the one large outputs are spilled to.
	// They need not exist yet.
	Readable []string
}

// Guard decides about paths for one working directory.
type Guard struct {
	dir      string
	home     string
	readable []string
	system   []string
	private  []string
}

// systemDirs belong to the operating system. Nothing in them is written,
// unless the working directory itself is there.
var systemDirs = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr",
	"/Library", "/System", "/Applications",
}

// devices are not files: writing to them changes nothing.
var devices = []string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"}

// privateDirs are below the home directory and hold keys: they are asked about
// before they are read and never written.
var privateDirs = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store", ".local/share/keyrings"}

// NewGuard returns a guard for workdir, which must be an existing directory.
func NewGuard(workdir string, o Options) (*Guard, error) {
	absolute, err := filepath.Abs(workdir)
	if err != nil {
		return nil, fmt.Errorf("resolve the working directory: %w", err)
	}
	g := &Guard{home: o.Home}
	if g.dir, err = resolve(absolute); err != nil {
		return nil, err
	}
	info, err := os.Stat(g.dir)
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("the working directory %s is not a directory", g.dir)
	}
	if g.home == "" {
		// Without a home directory "~" is refused when it is used.
		g.home, _ = os.UserHomeDir()
	}
	for _, dir := range o.Readable {
		if g.readable, err = addResolved(g.readable, dir); err != nil {
			return nil, err
		}
	}
	for _, dir := range systemDirs {
		if runtime.GOOS == "windows" || dir == g.home {
			continue
		}
		if g.system, err = addResolved(g.system, dir); err != nil {
			return nil, err
		}
	}
	if windows := os.Getenv("SystemRoot"); runtime.GOOS == "windows" && windows != "" {
		g.system = append(g.system, windows)
	}
	for _, dir := range privateDirs {
		if g.home == "" {
			break
		}
		if g.private, err = addResolved(g.private, filepath.Join(g.home, dir)); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// addResolved appends a directory under the name that resolved paths have.
func addResolved(list []string, dir string) ([]string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", dir, err)
	}
	resolved, err := resolve(absolute)
	if err != nil {
		return nil, err
	}
	return append(list, resolved), nil
}

// Dir returns the working directory, absolute and free of symbolic links.
func (g *Guard) Dir() string { return g.dir }

// Home returns the directory that "~" stands for, empty when there is none.
func (g *Guard) Home() string { return g.home }

// Resolve returns the absolute path, free of symbolic links, that path leads
// to. A relative path starts at the working directory, "~" at home.
func (g *Guard) Resolve(path string) (string, error) { return g.ResolveFrom(g.dir, path) }

// ResolveFrom is [Guard.Resolve] for a relative path that starts at dir.
func (g *Guard) ResolveFrom(dir, path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty")
	case strings.ContainsRune(path, 0):
		return "", errors.New("the path holds a NUL byte")
	case path == "~" || strings.HasPrefix(path, "~/"):
		if g.home == "" {
			return "", fmt.Errorf("%s: no home directory is known; give an absolute path", path)
		}
		path = g.home + path[1:]
	case !filepath.IsAbs(path):
		// Joined by hand: filepath.Join would take ".." off the text.
		path = dir + string(filepath.Separator) + path
	}
	return resolve(path)
}

// Inside reports whether a resolved path is the working directory or lies in
// it.
func (g *Guard) Inside(resolved string) bool { return within(resolved, g.dir) }

// Check resolves path as [Guard.Resolve] does and decides about an access to
// it. The error is about paths that cannot be resolved.
func (g *Guard) Check(path string, access Access) (Decision, error) {
	return g.CheckFrom(g.dir, path, access)
}

// CheckFrom is [Guard.Check] for a relative path that starts at dir.
func (g *Guard) CheckFrom(dir, path string, access Access) (Decision, error) {
	resolved, err := g.ResolveFrom(dir, path)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Path: resolved, Inside: g.Inside(resolved)}
	if access == AccessWrite {
		d.Verdict, d.Reason = g.checkWrite(resolved)
	} else {
		d.Verdict, d.Reason = g.checkRead(resolved)
	}
	return d, nil
}

func (g *Guard) checkRead(path string) (Verdict, string) {
	below := func(dir string) bool { return within(path, dir) }
	switch {
	case slices.Contains(devices, path):
		return VerdictAllow, ""
	case g.MayHoldSecrets(path):
		return VerdictAsk, "reads " + g.Display(path) + ", which may hold secrets"
	case g.Inside(path), slices.ContainsFunc(g.readable, below):
		return VerdictAllow, ""
	}
	return VerdictAsk, "reads " + g.Display(path) + ", outside the working directory"
}

// MayHoldSecrets reports whether a resolved path is, by its name or place,
// probably one of keys, passwords or other credentials.
func (g *Guard) MayHoldSecrets(resolved string) bool {
	return looksSecret(filepath.Base(resolved)) ||
		slices.ContainsFunc(g.private, func(dir string) bool { return within(resolved, dir) })
}

func (g *Guard) checkWrite(path string) (Verdict, string) {
	if slices.Contains(devices, path) {
		return VerdictAllow, ""
	}
	for _, dir := range g.system {
		worksThere := g.Inside(path) && within(g.dir, dir)
		if within(path, dir) && !worksThere {
			return VerdictDeny, "writes to " + g.Display(path) + ", which belongs to the system"
		}
	}
	switch {
	case path == filepath.Dir(path):
		return VerdictDeny, "writes to the root directory"
	case slices.ContainsFunc(g.private, func(dir string) bool { return within(path, dir) }):
		return VerdictDeny, "writes to " + g.Display(path) + ", where keys and credentials are kept"
	case slices.Contains(splitPath(path), ".git"):
		return VerdictDeny, "writes to " + g.Display(path) + ", which belongs to git (use git commands)"
	case !g.Inside(path):
		return VerdictAsk, "writes to " + g.Display(path) + ", outside the working directory"
	}
	return VerdictAsk, "writes to " + g.Display(path)
}

// Display returns a resolved path as people like to read it: relative to the
// working directory where it lies in it, with "~" for the home directory,
// absolute elsewhere.
func (g *Guard) Display(resolved string) string {
	if g.Inside(resolved) {
		if rel, err := filepath.Rel(g.dir, resolved); err == nil {
			return filepath.ToSlash(rel)
		}
	}
	if g.home != "" && within(resolved, g.home) {
		return "~" + filepath.ToSlash(resolved[len(g.home):])
	}
	return resolved
}

// within reports whether path is dir or lies in it, by whole components.
func within(path, dir string) bool {
	if foldsCase() {
		path, dir = strings.ToLower(path), strings.ToLower(dir)
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}

// foldsCase reports whether file names usually ignore case here.
func foldsCase() bool { return runtime.GOOS == "darwin" || runtime.GOOS == "windows" }

// secretNames are file names that usually hold keys or passwords.
var secretNames = []string{
	".env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".vault-token",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.json",
}

// secretExtensions are those of private keys and password stores.
var secretExtensions = []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"}

// envExamples end names like ".env.example" that are made to be shared.
var envExamples = []string{".example", ".sample", ".template", ".dist", ".defaults"}

// looksSecret reports whether a file of this name probably holds secrets.
func looksSecret(name string) bool {
	name = strings.ToLower(name)
	extension := filepath.Ext(name)
	return slices.Contains(secretNames, name) || slices.Contains(secretExtensions, extension) ||
		strings.HasPrefix(name, ".env.") && !slices.Contains(envExamples, extension)
}
