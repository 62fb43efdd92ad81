package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"keen/internal/filesystem"
	"keen/internal/simulator"
)

// demoJob is what the demo's model has to do.
type demoJob struct {
	dir, name string
	files     []string
	passes    int
	task      string
	// answer is the right one, from the files themselves.
	answer  string
	cleanUp func()
}

// Bounds of the demo's job.
const (
	maxDemoFiles    = 120
	maxDemoFileSize = 48 << 10
	// minDemoBytes is what a directory must hold at least; a smaller one would
	// have to be read too often.
	minDemoBytes = 64 << 10
)

// findDemoJob makes a job of the text files in dir: enough passes over them to
// fill the window more than ten times. A directory with too little text is
// replaced by a sample project, which cleanUp removes.
func findDemoJob(ctx context.Context, dir string, window int) (demoJob, error) {
	job := demoJob{dir: dir, name: "this directory", cleanUp: func() {}}
	tokens, size, err := job.collect(ctx)
	if err != nil {
		return job, err
	}
	if size < minDemoBytes {
		sample, err := sampleProject()
		if err != nil {
			return job, err
		}
		job = demoJob{dir: sample, name: "a sample project (this directory has too little text)", cleanUp: func() { _ = os.RemoveAll(sample) }}
		if tokens, _, err = job.collect(ctx); err != nil {
			job.cleanUp()
			return job, err
		}
	}
	// Line numbers and the like make the output larger than the files, never
	// smaller.
	job.passes = demoVolume*window/tokens + 1
	job.task = simulator.SurveyTask(job.files, job.passes)
	return job, nil
}

// collect finds the text files, their size and the right answer.
func (j *demoJob) collect(ctx context.Context) (tokens, size int, err error) {
	guard, err := filesystem.NewGuard(j.dir, filesystem.Options{})
	if err != nil {
		return 0, 0, err
	}
	lines, longest, longestLines := 0, "none", 0
	_, err = filesystem.Walk(ctx, j.dir, func(e filesystem.Entry) error {
		if len(j.files) == maxDemoFiles {
			return fs.SkipAll
		}
		// What looks like a secret is read only after a question.
		if d, err := guard.Check(e.Path, filesystem.AccessRead); err != nil || d.Verdict != filesystem.VerdictAllow {
			return nil //nolint:nilerr // then it is no file for the demo
		}
		text, ok := readText(e)
		if !ok {
			return nil
		}
		n := countLines(text)
		j.files = append(j.files, e.Rel)
		tokens += simulator.CountTokens(string(text))
		size += len(text)
		lines += n
		if n > longestLines {
			longest, longestLines = e.Rel, n
		}
		return nil
	})
	j.answer = fmt.Sprintf("There are %d files with %d lines in all. The longest is %s with %d lines.", len(j.files), lines, longest, longestLines)
	return tokens, size, err
}

// readText reads a file that is text of a size to read in one call.
func readText(e filesystem.Entry) ([]byte, bool) {
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > maxDemoFileSize {
		return nil, false
	}
	if strings.ContainsFunc(e.Rel, func(r rune) bool { return r < ' ' || r == utf8.RuneError }) {
		return nil, false
	}
	text, err := os.ReadFile(e.Path)
	if err != nil || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, false
	}
	return text, true
}

// countLines counts lines; a last one without a line end counts too.
func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// How read_file shows a file: each line with its number, and a note at the end
// when the file goes on.
var (
	numberedLine = regexp.MustCompile(`(?m)^(\d+)\t`)
	partOfFile   = regexp.MustCompile(`(?m)^\[Lines \d+ to \d+ of (\d+)\.`)
)

// fileLines takes the number of a file's lines from what read_file returned,
// or from the head and tail that a compaction kept of it.
func fileLines(output string) (int, bool) {
	for _, e := range []*regexp.Regexp{partOfFile, numberedLine} {
		if all := e.FindAllStringSubmatch(output, -1); len(all) > 0 {
			n, err := strconv.Atoi(all[len(all)-1][1])
			return n, err == nil
		}
	}
	return 0, false
}

// sampleProject writes a small project into a temporary directory.
func sampleProject() (string, error) {
	dir, err := os.MkdirTemp("", "keen-sample-")
	if err != nil {
		return "", fmt.Errorf("make a sample project: %w", err)
	}
	for i := range 24 {
		var b strings.Builder
		fmt.Fprintf(&b, "// Package part%02d is a part of the sample project.\npackage part%02d\n", i, i)
		for f := range 12 + i%7 {
			fmt.Fprintf(&b, "\n// Step%d adds what comes before it.\nfunc Step%d(values []int) int {\n\tsum := %d\n\tfor _, v := range values {\n\t\tsum += v * %d\n\t}\n\treturn sum\n}\n", f, f, i*f, f+1)
		}
		name := filepath.Join(dir, fmt.Sprintf("part%02d", i), "part.go")
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err == nil {
			err = os.WriteFile(name, []byte(b.String()), 0o600)
		}
		if err != nil {
			_ = os.RemoveAll(dir)
			return "", fmt.Errorf("make a sample project: %w", err)
		}
	}
	return dir, nil
}
