// Command keen is a terminal coding agent.
package main

import (
	"os"

	"keen/internal/cli/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
