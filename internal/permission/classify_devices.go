package permission

import (
	"path"
	"regexp"
	"strings"

	"keen/internal/filesystem"
)

// devices are files that hold nothing: reading or writing them reaches no
// file. What /dev/fd/N stands for was opened in the script and looked at
// there. They are told by their names, because links such as /dev/stdin lead
// elsewhere in each process.
var devices = regexp.MustCompile(`^/dev/(null|zero|full|tty|u?random|stdin|stdout|stderr|fd/[0-9]+)$`)

func isDevice(text string) bool {
	return strings.HasPrefix(text, "/") && devices.MatchString(path.Clean(text))
}

// isInput reports whether a file name stands for standard input.
func isInput(text string) bool {
	switch path.Clean(text) {
	case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		return true
	}
	return text == "-"
}

// replacesDevice reports whether a command would replace or remove a device
// instead of writing to it.
func replacesDevice(name string, a arg, access filesystem.Access) bool {
	switch name {
	case "tee", "dd", "cp":
		return false
	}
	return access == filesystem.AccessWrite && isDevice(a.text)
}
