package apple_test

import (
	"bytes"
	"debug/macho"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/native/cuda/check"
	"github.com/rlx-go/rlx/native/metal/apple"
)

var update = flag.Bool("update", false, "write the golden files")

// architectures are those of macOS, by the name that Apple's tools have for them.
var architectures = []string{"arm64", "x86_64"}

// object builds the binding of package driver for a Mac, as a library, and opens it.
func object(t *testing.T, architecture string) *macho.File {
	t.Helper()
	clang, err := check.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, apple.Headers); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("../driver/*_darwin.m")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources: ", err)
	}
	var objects []string
	for _, source := range sources {
		to := filepath.Join(dir, filepath.Base(source)+".o")
		run(t, clang, "-target", architecture+"-apple-macos11", "-nostdlibinc", "-isystem", filepath.Join(dir, "sdk"), "-isystem", filepath.Join(dir, "include"),
			"-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-fblocks", "-O2", "-c", source, "-o", to)
		objects = append(objects, to)
	}
	stubs, err := filepath.Glob(filepath.Join(dir, "lib", "*.tbd"))
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "binding.dylib")
	run(t, strings.Replace(clang, "clang", "ld64.lld", 1), slices.Concat(
		[]string{"-arch", architecture, "-platform_version", "macos", "11.0", "14.0", "-dylib", "-o", library}, objects, stubs)...)
	file, err := macho.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// selectors returns the names of the methods that a library sends, sorted.
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

// documented returns the table of selectors.txt: by selector, the page that documents it.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/selectors.txt")
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

// TestTheBindingBuildsForMacs compiles and links the shipping Objective-C, and holds what
// it asks of Apple's libraries against a list of documented names.
func TestTheBindingBuildsForMacs(t *testing.T) {
	for _, architecture := range architectures {
		t.Run(architecture, func(t *testing.T) {
			file := object(t, architecture)
			libraries, err := file.ImportedLibraries()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"Metal.framework", "Foundation.framework", "libobjc", "libSystem"} {
				if !slices.ContainsFunc(libraries, func(l string) bool { return strings.Contains(l, want) }) {
					t.Errorf("not linked with %s: %v", want, libraries)
				}
			}
			pages, sent := documented(t), selectors(t, file)
			if *update {
				writeSelectors(t, sent, pages)
			}
			for _, s := range sent {
				if !strings.HasPrefix(pages[s], "https://developer.apple.com/documentation/") {
					t.Errorf("%s is sent, and testdata/selectors.txt has no page of Apple's for it", s)
				}
			}
			for s := range pages {
				if !slices.Contains(sent, s) {
					t.Errorf("testdata/selectors.txt has %s, which is not sent", s)
				}
			}
		})
	}
}

// writeSelectors writes the list again; a new selector has a question mark for its page.
func writeSelectors(t *testing.T, sent []string, pages map[string]string) {
	var sb strings.Builder
	for _, s := range sent {
		page := pages[s]
		if page == "" {
			page = "?"
		}
		fmt.Fprintf(&sb, "%s %s\n", s, page)
	}
	if err := os.WriteFile("testdata/selectors.txt", []byte(sb.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The declarations that a Mac does not use are the ones that were written here: each is in
// the list too, or it is for nothing.
func TestDeclarationsAreUsed(t *testing.T) {
	pages := documented(t)
	header, err := fs.ReadFile(apple.Headers, "include/Metal/Metal.h")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(header)) {
		method, ok := strings.CutPrefix(line, "- (")
		if !ok || !strings.Contains(line, ";") {
			continue // of several lines: the linked library tells of those
		}
		_, method, _ = strings.Cut(method, ")")
		var selector strings.Builder
		for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(method), ";"), " ") {
			if name, _, ok := strings.Cut(part, ":"); ok {
				selector.WriteString(name + ":")
			} else if selector.Len() == 0 {
				selector.WriteString(part)
			}
		}
		if pages[selector.String()] == "" {
			t.Errorf("%s is declared and not used", selector.String())
		}
	}
}
