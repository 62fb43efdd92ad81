package tools

// The names by which the model calls the standard tools.
const (
	readFileName  = "read_file"
	writeFileName = "write_file"
	editFileName  = "edit_file"
	globName      = "glob"
	grepName      = "grep"
	bashName      = "bash"
)
