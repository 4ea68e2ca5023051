package guide_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the programs into GUIDE.md")

// programs returns the functions of this folder's tests by name: whole or, of an example, its body.
func programs(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	out, set := map[string]string{}, token.NewFileSet()
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(set, name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		text := func(from, to token.Pos) string {
			return string(source[set.Position(from).Offset:set.Position(to).Offset])
		}
		for _, d := range f.Decls {
			function, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			code := text(function.Pos(), function.End()) + "\n"
			if strings.HasPrefix(function.Name.Name, "Example") {
				code, _, _ = strings.Cut(text(function.Body.Lbrace+2, function.Body.Rbrace), "\t// Output:")
				code = strings.ReplaceAll(strings.TrimPrefix(code, "\t"), "\n\t", "\n")
			}
			out[function.Name.Name] = code
		}
	}
	return out
}

// marks finds the programs in the guide, with their code.
var marks = regexp.MustCompile("(?s)<!-- (\\w+) -->\n(?:```go\n.*?```\n)?")

// TestTheGuideShowsThePrograms compares the code of GUIDE.md with the functions it names, and asserts
// that it shows every example. -update writes it.
func TestTheGuideShowsThePrograms(t *testing.T) {
	text, err := os.ReadFile("GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	all := programs(t)
	shown := map[string]bool{}
	want := marks.ReplaceAllStringFunc(string(text), func(mark string) string {
		name := marks.FindStringSubmatch(mark)[1]
		code, known := all[name]
		if shown[name] = true; !known {
			t.Errorf("GUIDE.md shows %q, which is no function", name)
		}
		return "<!-- " + name + " -->\n```go\n" + code + "```\n"
	})
	if *update {
		if err := os.WriteFile("GUIDE.md", []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("GUIDE.md shows other programs: go test ./demo/guide -update writes it")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "Example") && !shown[name] {
			t.Errorf("GUIDE.md does not show %s", name)
		}
	}
}

// names finds the names of packages of this module in the table of other systems' names.
var names = regexp.MustCompile(`(?:nn|ops|optim|autodiff|rlx)\.[A-Z]\w*`)

// TestTheTableNamesWhatThereIs looks up each name in the last column of the table in the exported API.
func TestTheTableNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| rlx |\n")
	api := map[string]string{"nn": "ir_nn", "ops": "ir_ops", "optim": "autodiff_optim", "autodiff": "autodiff", "rlx": "rlx"}
	n := 0
	for row := range strings.Lines(table) {
		columns := strings.Split(row, " | ")
		for _, name := range names.FindAllString(columns[len(columns)-1], -1) {
			n++
			pkg, symbol, _ := strings.Cut(name, ".")
			listed, err := os.ReadFile(filepath.Join("..", "..", "internal", "api", "testdata", api[pkg]+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?m)\b` + symbol + `\b`).Match(listed) {
				t.Errorf("the table has %s, which the package has not: %s", name, row)
			}
		}
	}
	if n < 40 {
		t.Errorf("%d names in the table", n)
	}
}
