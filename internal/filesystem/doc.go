// Package filesystem knows where a path really leads and what may be done
// there.
//
// A [Guard] resolves a path the way the operating system would, every symbolic
// link included, also for files that do not exist yet, and only then decides:
// reading inside the working directory is allowed, everything else is asked
// about, and what belongs to the system is not written to at all. [Walk]
// streams the files below a directory as git sees them: without what the
// ignore files exclude, and without git's own directory.
//
// The package asks nobody and changes no file. A Guard is immutable and safe
// for concurrent use. Tests use real temporary directories.
package filesystem
