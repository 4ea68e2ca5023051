package rlx_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// read returns a file of the module as text.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestREADMEListsThePackages finds importable packages of which README does not say whether they are
// stable.
func TestREADMEListsThePackages(t *testing.T) {
	_, stability, _ := strings.Cut(read(t, "README.md"), "## Stability\n")
	files, err := filepath.Glob("internal/api/testdata/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d packages, error %v", len(files), err)
	}
	forTests := regexp.MustCompile(`irtest|backendtest|^ir/ops/samples$`)
	for _, file := range files {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "_", "/")
		if !forTests.MatchString(name) && !strings.Contains(stability, "`"+name+"`") {
			t.Errorf("README does not list package %s below Stability", name)
		}
	}
}

// TestTheVersionIsTheSameEverywhere holds the package of npm, the name in plans and the benchmark's tables against the
// last release.
func TestTheVersionIsTheSameEverywhere(t *testing.T) {
	want := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)$`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if want == nil {
		t.Fatal("CHANGELOG.md has no release")
	}
	for file, line := range map[string]string{
		"js/package.json":                   `"version": "%s"`,
		"internal/compiler/plan/compile.go": `const Version = "rlx %s"`,
		"js/bench/peers/rlx.mjs":            `version: '%s'`,
		"js/bench/peers/built.mjs":          `version: '%s'`,
	} {
		if s := fmt.Sprintf(line, want[1]); !strings.Contains(read(t, file), s) {
			t.Errorf("%s does not have %s, the last release in CHANGELOG.md", file, s)
		}
	}
}

// TestPackageDocsNameAFile finds packages of more than two files whose documentation names none of them, so that a
// reader does not know where to start.
func TestPackageDocsNameAFile(t *testing.T) {
	list, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string][]string{}
	for _, file := range strings.Fields(string(list)) {
		if dir := filepath.Dir(file); !strings.HasSuffix(file, "_test.go") && !strings.Contains(dir, "testdata") {
			folders[dir] = append(folders[dir], file)
		}
	}
	checked := 0
	for dir, files := range folders {
		if len(files) <= 2 {
			continue
		}
		checked++
		var text strings.Builder
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(f.Doc.Text())
		}
		names := regexp.MustCompile(`\w+\.go\b`).FindAllString(text.String(), -1)
		if !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(files, filepath.Join(dir, name)) }) {
			t.Errorf("the documentation of %s names none of its %d files to read first", dir, len(files))
		}
	}
	if checked < 60 {
		t.Errorf("checked %d packages", checked)
	}
}

// TestREADMEShowsTheExample holds the Go code of the README against Example,
// which the tests run.
func TestREADMEShowsTheExample(t *testing.T) {
	_, shown, _ := strings.Cut(read(t, "README.md"), "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	_, body, _ := strings.Cut(read(t, "example_test.go"), "func Example() {\n")
	body, _, _ = strings.Cut(body, "\t// Output:")
	var want strings.Builder
	for line := range strings.Lines(body) {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if shown == "" || shown != want.String() {
		t.Errorf("the README shows\n%s\nthe example is\n%s", shown, want.String())
	}
}

// variables finds where a program or a script names an environment variable of rlx.
var variables = regexp.MustCompile(`(?:"|process\.env\.|\$\{?|^|[ =])(RLX_[A-Z0-9_]+)(?:"|\b)`)

// TestCONTRIBUTINGListsTheEnvironment finds environment variables that the table of
// CONTRIBUTING lacks, and rows whose variable nothing reads. A row that ends in an ellipsis
// matches all variables with that prefix.
func TestCONTRIBUTINGListsTheEnvironment(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "## Environment variables\n")
	table, _, _ = strings.Cut(table, "\n## ")
	unused := map[string]bool{}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, name := range regexp.MustCompile("`(RLX_[^`]+)`").FindAllStringSubmatch(names, -1) {
			unused[name[1]] = true
		}
	}
	listed := slices.Collect(maps.Keys(unused))
	files, err := exec.Command("git", "ls-files", "*.go", "*.mjs", "*.ts", "*.sh", "*.py", "Makefile").Output()
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{}
	for _, file := range strings.Fields(string(files)) {
		for _, found := range variables.FindAllStringSubmatch(read(t, file), -1) {
			i := slices.IndexFunc(listed, func(row string) bool {
				prefix, many := strings.CutSuffix(row, "…")
				return found[1] == row || many && strings.HasPrefix(found[1], prefix)
			})
			if i < 0 {
				missing[found[1]] = file
			} else {
				delete(unused, listed[i])
			}
		}
	}
	for name, file := range missing {
		t.Errorf("%s reads %s, which the table of CONTRIBUTING.md lacks", file, name)
	}
	for name := range unused {
		t.Errorf("CONTRIBUTING.md lists %s, which nothing reads", name)
	}
}

// TestTheWalkThroughsAreTrue holds the stations of CONTRIBUTING's walk-throughs to the code: each
// file declares its function.
func TestTheWalkThroughsAreTrue(t *testing.T) {
	for title, least := range map[string]int{"Softmax from Go to the GPU": 15, "A product with an epilogue on four targets": 14, "A convolution and its gradients on CUDA": 13} {
		_, table, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "## "+title+"\n")
		table, _, _ = strings.Cut(table, "\n## ")
		stations := regexp.MustCompile("(?m)^\\| \\d+ \\| `([^`]+)` \\| `([^`]+)` ").FindAllStringSubmatch(table, -1)
		if len(stations) < least {
			t.Errorf("%s has %d stations", title, len(stations))
		}
		for _, s := range stations {
			declares := regexp.MustCompile(`(?m)^(?:export )?(?:async )?func(?:tion)? (?:\([^)]*\) )?` + s[2] + `[(<[]`)
			if !declares.MatchString(read(t, s[1])) {
				t.Errorf("%s declares no %s", s[1], s[2])
			}
		}
	}
}
