// Command bench writes the output of a benchmark, from standard input, to a section of results.md,
// with the date and the processor, and prints it. Run it from the root of the module:
//
//	go test -run='^$' -bench=. ./native/cpu/... | go run ./native/bench CPU
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"
)

const file = "native/bench/results.md"

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: bench SECTION <OUTPUT")
	}
	output, err := io.ReadAll(io.TeeReader(os.Stdin, os.Stdout))
	if err != nil {
		log.Fatal(err)
	}
	if err := record(file, os.Args[1], where(time.Now()), string(output)); err != nil {
		log.Fatal(err)
	}
}

// record replaces a section of a file of measurements.
func record(file, section, where, output string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := replace(string(old), section, where, output)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// replace returns the text with a section of that name replaced, or appended. Empty output is an
// error: the benchmark has failed.
func replace(text, section, where, output string) (string, error) {
	output = strings.TrimSpace(output)
	if output == "" {
		return "", fmt.Errorf("%s: the benchmark printed nothing", section)
	}
	heading := "## " + section + "\n"
	made := heading + "\n" + where + "\n\n```text\n" + output + "\n```\n"
	before, rest, found := strings.Cut(text, heading)
	if !found {
		return strings.TrimRight(text, "\n") + "\n\n" + made, nil
	}
	if _, after, more := strings.Cut(rest, "\n## "); more {
		made += "\n## " + after
	}
	return before + made, nil
}

var model = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

// where returns the date and the processor of a benchmark.
func where(now time.Time) string {
	processor := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := model.FindSubmatch(info); found != nil {
			processor = string(found[1])
		}
	}
	return fmt.Sprintf("%s, %d processors of %s, %s:", now.Format(time.DateOnly), runtime.NumCPU(), processor, runtime.Version())
}
