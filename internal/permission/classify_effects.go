package permission

import (
	"slices"
	"strings"
)

// effect is what is known about a command that is more than reading.
type effect struct {
	// what completes "rm ...", such as "removes files".
	what string
	// dangerous effects are hard to undo, outside ones reach beyond the
	// working directory whatever the arguments are.
	dangerous, outside bool
	// writes says which operands are changed.
	writes writes
	// skip says that the first operand is a program or a pattern, no file.
	skip bool
	// interpreter commands run a program that they are given.
	interpreter bool
}

type writes int

const (
	writesNothing writes = iota
	writesAll
	writesLast
)

var effects = map[string]effect{
	"rm":       {what: "removes files", dangerous: true, writes: writesAll},
	"unlink":   {what: "removes files", dangerous: true, writes: writesAll},
	"shred":    {what: "destroys files", dangerous: true, writes: writesAll},
	"truncate": {what: "cuts files off", dangerous: true, writes: writesAll},
	"dd":       {what: "overwrites files or disks", dangerous: true},
	"rmdir":    {what: "removes directories", writes: writesAll},
	"mv":       {what: "moves files", writes: writesAll},
	"cp":       {what: "copies files", writes: writesLast},
	"install":  {what: "copies files", writes: writesLast},
	"ln":       {what: "makes links", writes: writesLast},
	"rsync":    {what: "copies files", writes: writesLast},
	"touch":    {what: "makes files", writes: writesAll},
	"mkdir":    {what: "makes directories", writes: writesAll},
	"tee":      {what: "writes files", writes: writesAll},
	"patch":    {what: "changes files", writes: writesAll},
	"chown":    {what: "changes owners", dangerous: true, writes: writesAll, skip: true},
	"chgrp":    {what: "changes groups", dangerous: true, writes: writesAll, skip: true},

	"sed":  {what: "runs a program that may change files", skip: true},
	"awk":  {what: "runs a program that may change files", skip: true},
	"gawk": {what: "runs a program that may change files", skip: true},
	"mawk": {what: "runs a program that may change files", skip: true},
	"grep": {skip: true}, "egrep": {skip: true}, "fgrep": {skip: true}, "rg": {skip: true}, "jq": {skip: true},

	"env":      {what: "may show secrets of the environment"},
	"printenv": {what: "may show secrets of the environment"},
	"set":      {what: "changes the shell or shows its variables"},

	"kill":      {what: "ends processes", dangerous: true, outside: true, skip: true},
	"pkill":     {what: "ends processes", dangerous: true, outside: true, skip: true},
	"killall":   {what: "ends processes", dangerous: true, outside: true, skip: true},
	"shutdown":  {what: "stops the machine", dangerous: true, outside: true},
	"reboot":    {what: "stops the machine", dangerous: true, outside: true},
	"halt":      {what: "stops the machine", dangerous: true, outside: true},
	"poweroff":  {what: "stops the machine", dangerous: true, outside: true},
	"mkfs":      {what: "erases disks", dangerous: true, outside: true, writes: writesAll},
	"fdisk":     {what: "changes disks", dangerous: true, outside: true},
	"parted":    {what: "changes disks", dangerous: true, outside: true},
	"wipefs":    {what: "erases disks", dangerous: true, outside: true},
	"mount":     {what: "changes mounts", dangerous: true, outside: true},
	"umount":    {what: "changes mounts", dangerous: true, outside: true},
	"systemctl": {what: "changes services", dangerous: true, outside: true},
	"service":   {what: "changes services", dangerous: true, outside: true},
	"launchctl": {what: "changes services", dangerous: true, outside: true},
	"crontab":   {what: "changes scheduled jobs", dangerous: true, outside: true},
	"iptables":  {what: "changes the firewall", dangerous: true, outside: true},
	"useradd":   {what: "changes accounts", dangerous: true, outside: true},
	"userdel":   {what: "changes accounts", dangerous: true, outside: true},
	"usermod":   {what: "changes accounts", dangerous: true, outside: true},
	"passwd":    {what: "changes accounts", dangerous: true, outside: true},
	"chroot":    {what: "runs in another root", dangerous: true, outside: true},
	"apt":       {what: "changes installed software", outside: true},
	"apt-get":   {what: "changes installed software", outside: true},
	"yum":       {what: "changes installed software", outside: true},
	"dnf":       {what: "changes installed software", outside: true},
	"pacman":    {what: "changes installed software", outside: true},
	"brew":      {what: "changes installed software", outside: true},
	"curl":      {what: "talks to other machines", outside: true},
	"wget":      {what: "talks to other machines", outside: true},
	"nc":        {what: "talks to other machines", outside: true},
	"ssh":       {what: "talks to other machines", outside: true},
	"scp":       {what: "talks to other machines", outside: true},
	"sftp":      {what: "talks to other machines", outside: true},
	"source":    {what: "runs a file in the shell"},
	".":         {what: "runs a file in the shell"},
	"alias":     {what: "gives commands other meanings", dangerous: true},

	"python": {what: "runs a program", interpreter: true}, "python3": {what: "runs a program", interpreter: true},
	"perl": {what: "runs a program", interpreter: true}, "ruby": {what: "runs a program", interpreter: true},
	"node": {what: "runs a program", interpreter: true}, "php": {what: "runs a program", interpreter: true},
	"lua": {what: "runs a program", interpreter: true}, "deno": {what: "runs a program", interpreter: true},
	"osascript": {what: "runs a program", interpreter: true, outside: true},
}

// specialEffects depend on the arguments.
var specialEffects = map[string]func([]string) effect{
	"chmod":  chmodEffect,
	"git":    gitEffect,
	"docker": containerEffect, "podman": containerEffect, "kubectl": containerEffect,
	"terraform": containerEffect, "helm": containerEffect,
	"npm": publishEffect, "pnpm": publishEffect, "yarn": publishEffect, "cargo": publishEffect, "twine": publishEffect, "gh": publishEffect,
}

func chmodEffect(args []string) effect {
	e := effect{what: "changes permissions", writes: writesAll, skip: true}
	e.dangerous = hasShort(args, "R") || slices.Contains(args, "--recursive")
	return e
}

func containerEffect(args []string) effect {
	for _, word := range []string{"rm", "rmi", "prune", "delete", "destroy", "apply", "kill", "uninstall", "drain"} {
		if slices.Contains(args, word) {
			return effect{what: word + " changes running systems", dangerous: true, outside: true}
		}
	}
	return effect{}
}

func publishEffect(args []string) effect {
	for _, word := range []string{"publish", "unpublish", "upload", "delete", "merge", "release", "yank"} {
		if slices.Contains(args, word) {
			return effect{what: word + " changes what others see", dangerous: true, outside: true}
		}
	}
	return effect{}
}

// hasShort reports whether a cluster of short options holds one of letters.
func hasShort(args []string, letters string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a[1:], letters) {
			return true
		}
	}
	return false
}
