package applecheck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outsideFile lists facts from third parties who read Apple's headers: lines of "method",
// name and source, or "constant", name, value and source.
const outsideFile = "testdata/outside.txt"

// outside are the facts of a framework.
type outside struct {
	methods   map[string]bool
	constants map[string]string // values
}

func readOutside(t *testing.T) outside {
	t.Helper()
	text, err := os.ReadFile(outsideFile)
	if err != nil {
		t.Fatal(err)
	}
	o := outside{methods: map[string]bool{}, constants: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		switch words := strings.Fields(line); {
		case len(words) == 3 && words[0] == "method":
			o.methods[words[1]] = true
		case len(words) == 4 && words[0] == "constant":
			o.constants[words[1]] = words[2]
		case !strings.HasPrefix(line, "#"):
			t.Errorf("%s: malformed line %q", outsideFile, line)
		}
	}
	return o
}

// checkMethods fails for methods of the framework that no third party confirms. GNUstep,
// which the binding is also built for, declares those of Foundation.
func (o outside) checkMethods(t *testing.T, pages map[string]string) {
	t.Helper()
	for selector, page := range pages {
		framework, _, _ := strings.Cut(strings.TrimPrefix(page, documentation), "/")
		if !slices.Contains([]string{"foundation", "objectivec"}, framework) && !o.methods[selector] {
			t.Errorf("%s has no method %s", outsideFile, selector)
		}
	}
}

// constant matches a constant whose value a header gives.
var constant = regexp.MustCompile(`\b(MT?L[A-Z]\w+) = [^;]`)

// checkConstants compares the constants of the header with the facts, at compile time.
func (b Binding) checkConstants(t *testing.T, o outside) {
	header, err := fs.ReadFile(b.Headers, "include/"+b.Framework+"/"+b.Framework+".h")
	if err != nil {
		t.Fatal(err)
	}
	source := fmt.Sprintf("#import <%s/%s.h>\n", b.Framework, b.Framework)
	found := constant.FindAllStringSubmatch(string(header), -1)
	if len(found) < 5 {
		t.Errorf("the header has %d constants", len(found))
	}
	for _, m := range found {
		value, known := o.constants[m[1]]
		if !known {
			t.Errorf("%s has no constant %s", outsideFile, m[1])
			continue
		}
		source += fmt.Sprintf("_Static_assert(%s == %s, \"%s is %s\");\n", m[1], value, m[1], value)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "constants.m")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	clang := b.unpack(t, dir)
	b.compile(t, clang, dir, architectures[0], file)
}
