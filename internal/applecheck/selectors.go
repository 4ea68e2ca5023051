package applecheck

import (
	"bytes"
	"debug/macho"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	selectorsFile = "testdata/selectors.txt"
	documentation = "https://developer.apple.com/documentation/"
)

// selectors returns the methods that a library sends, sorted.
func selectors(t *testing.T, file *macho.File) []string {
	t.Helper()
	section := file.Section("__objc_methname")
	if section == nil {
		t.Fatal("no methods")
	}
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range bytes.Split(bytes.TrimRight(data, "\x00"), []byte{0}) {
		out = append(out, string(name))
	}
	slices.Sort(out)
	return out
}

// checkSelectors compares the methods sent with the list, or rewrites it.
func checkSelectors(t *testing.T, sent []string) {
	pages := documented(t)
	if *update {
		writeSelectors(t, sent, pages)
	}
	for _, s := range sent {
		if !strings.HasPrefix(pages[s], documentation) {
			t.Errorf("%s is sent, and %s has no page of Apple's for it", s, selectorsFile)
		}
	}
	for s := range pages {
		if !slices.Contains(sent, s) {
			t.Errorf("%s has %s, which is not sent", selectorsFile, s)
		}
	}
}

// documented returns the list: documentation pages by selector.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(selectorsFile)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if selector, page, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[selector] = strings.TrimSpace(page)
		}
	}
	return out
}

// writeSelectors rewrites the list; a new selector gets a question mark as its page.
func writeSelectors(t *testing.T, sent []string, pages map[string]string) {
	var sb strings.Builder
	for _, s := range sent {
		page := pages[s]
		if page == "" {
			page = "?"
		}
		fmt.Fprintf(&sb, "%s %s\n", s, page)
	}
	if err := os.WriteFile(selectorsFile, []byte(sb.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkDeclarations fails for methods that the header declares and no file sends, since they
// have no page.
func (b Binding) checkDeclarations(t *testing.T) {
	pages := documented(t)
	header, err := fs.ReadFile(b.Headers, "include/"+b.Framework+"/"+b.Framework+".h")
	if err != nil {
		t.Fatal(err)
	}
	declared := declarations(string(header))
	if len(declared) == 0 {
		t.Error("the header declares no method")
	}
	for _, selector := range declared {
		if pages[selector] == "" {
			t.Errorf("%s is declared and not used", selector)
		}
	}
}

// declaration matches a method declaration, which may span lines.
var declaration = regexp.MustCompile(`(?m)^[-+] \([^;]*;`)

// declarations returns the names of the methods that a header declares.
func declarations(header string) []string {
	var out []string
	for _, text := range declaration.FindAllString(header, -1) {
		out = append(out, selectorOf(text))
	}
	return out
}

// parameter matches the type and name after a colon of a method declaration; a block type
// has nested parentheses.
var parameter = regexp.MustCompile(`:\((?:[^()]|\([^()]*\))*\)\s*\w+`)

// selectorOf returns the selector of a method declaration such as "-
// (void)setSize:(NSUInteger)size;".
func selectorOf(method string) string {
	_, method, _ = strings.Cut(method, ")")
	method = parameter.ReplaceAllString(strings.TrimSuffix(method, ";"), ":")
	return strings.Join(strings.Fields(method), "")
}
