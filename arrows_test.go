package rlx_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// layers are the packages of the module, those that others import first. A
// package may import its own room and those of layers before; of two rooms in
// one layer, neither may import the other.
var layers = [][]string{
	{"internal/format", "internal/nearest", "internal/permute", "internal/api", "internal/elementary", "internal/sourcevet", "internal/staticvet", "internal/ballast", "internal/wholefile", "internal/cgroup"},
	{"ir/dtype"},
	{"ir/scalar"},
	{"ir/routine"},
	{"ir/hardware"},
	{"ir/loop"}, // below the ops, which may write kernels
	{"internal/compiler/sim", "internal/compiler/kerneltest"},
	{"ir"},
	{"internal/derive", "internal/tensorfile"},
	{"ir/ops"},
	{"internal/argument"},
	{"ir/nn", "ir/image", "ir/signal", "ir/stats", "ir/losses", "ir/quantize"},
	{"autodiff", "internal/compiler/padding", "internal/compiler/passes", "internal/workload", "ir/format"},
	{"ir/cmplx", "ir/special"},
	{"ir/dist"},
	{"internal/hfconfig"},
	{"ir/irtest", "ir/lm"},
	{"ir/models"},
	{"internal/compiler/fusion", "internal/codegen/clike"},
	{"internal/compiler/sched/emit"},
	{"internal/compiler/sched/elementwise", "internal/compiler/sched/reduce", "internal/compiler/sched/scan", "internal/compiler/sched/indexed", "internal/compiler/sched/serial"},
	{"internal/compiler/sched/horizontal", "internal/compiler/sched/matmul", "internal/compiler/sched/persistent"},
	{"internal/compiler/sched/attention"},
	{"internal/compiler/sched"},
	{"internal/compiler", "internal/compiler/plan"},
	{"internal/clang", "internal/codegen/asm"},
	{"internal/simd"},
	{"internal/codegen"},
	{"internal/recipe", "internal/report"},
	{"internal/tune"},
	{"native/collective"},
	{"native"},
	{"internal/cuda", "internal/metal", "internal/coreml"},
	{"internal/executor/fair", "internal/executor/named", "internal/executor/pending", "internal/executor/ranks", "native/collective/nccl", "native/collective/mpi"},
	{"internal/executor/async", "internal/executor/synchronous", "internal/applecheck"},
	{"native/safetensors", "native/dataset", "native/backendtest", "native/cpu", "native/cuda", "native/metal", "internal/conformance", "internal/onnxcase"},
	{"webgpu", "wasm", "native/coreml", "native/lm", "internal/coreml/software"}, // the trainer of Core ML and the software Core ML run graphs on the CPU
	{""}, // the root
	{"internal/functiontest", "internal/api/zero"},
	{"native/lm/generate", "native/lm/perplexity", "native/models"},
	{"native/lm/serve"},
	{"demo", "js", "native/opsdoc", "native/rlx", "native/collective/example", "internal/applecheck/whole", "internal/coreml/suite"},
}

const module = "github.com/rlx-go/rlx"

// listImports lists the packages of the module with their imports, once.
var listImports = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("go", "list", "-e", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
})

// packages returns the imports of every package of the module, without those of tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := listImports()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	return all
}

// room returns the layer of a package of the module and the room there, the one
// with the longest name that fits.
func room(pkg string) (layer int, name string) {
	path := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	layer = -1
	for i, rooms := range layers {
		for _, r := range rooms {
			inside := path == r || r != "" && strings.HasPrefix(path, r+"/")
			if inside && (layer < 0 || len(r) > len(name)) {
				layer, name = i, r
			}
		}
	}
	return layer, name
}

func TestRoomsHavePackages(t *testing.T) {
	inhabited := map[string]bool{}
	for pkg := range packages(t) {
		_, name := room(pkg)
		inhabited[name] = true
	}
	for _, rooms := range layers {
		for _, name := range rooms {
			if !inhabited[name] {
				t.Errorf("layers names %q, where no package is", name)
			}
		}
	}
}

func TestImportArrows(t *testing.T) {
	for pkg, imports := range packages(t) {
		layer, name := room(pkg)
		if layer < 0 {
			t.Errorf("%s is in no room: see layers", pkg)
			continue
		}
		for _, imported := range imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			if l, r := room(imported); r != name && l >= layer {
				t.Errorf("%s must not import %s", pkg, imported)
			}
		}
	}
}

// The packages of the wasm module do not import those that would make it
// larger, and each heavy dependency has one room.
func TestModuleDependenciesAreConfined(t *testing.T) {
	lean := []string{"ir", "ir/dtype", "ir/scalar", "internal/derive", "ir/ops", "internal/compiler/passes", "ir/loop", "ir/hardware", "internal/compiler/fusion", "internal/compiler/sched", "internal/compiler/sched/emit", "internal/compiler/sched/elementwise", "internal/compiler/sched/reduce", "internal/compiler/sched/scan", "internal/compiler/sched/indexed", "internal/compiler/sched/serial", "internal/compiler/sched/horizontal", "internal/compiler/sched/matmul", "internal/compiler/sched/persistent", "internal/compiler/sched/attention", "internal/codegen/clike", "internal/compiler/plan", "autodiff", "internal/codegen/wgsl", "internal/codegen/wasmsimd"}
	heavy := []string{"reflect", "encoding/json", "text/template", "net", "net/http", "regexp", "time"}
	only := map[string]string{"gonum.org/": "native/cpu", "github.com/cogentcore/": "webgpu"}
	for pkg, imports := range packages(t) {
		_, name := room(pkg)
		forTests := strings.HasSuffix(pkg, "test") || strings.HasSuffix(pkg, "sim") || strings.HasSuffix(pkg, "gradcheck")
		for _, imported := range imports {
			if slices.Contains(lean, name) && !forTests && slices.Contains(heavy, imported) {
				t.Errorf("%s must not import %s: it is part of the wasm module", pkg, imported)
			}
			for prefix, home := range only {
				if strings.HasPrefix(imported, prefix) && name != home {
					t.Errorf("%s must not import %s: that is for %s", pkg, imported, home)
				}
			}
		}
	}
}

// TestModelsStayOutOfTheModule asserts that the page's compiler has no pretrained models, whose graphs it gets
// without their definitions.
func TestModelsStayOutOfTheModule(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./wasm/...")
	cmd.Env = append(cmd.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if _, name := room(pkg); strings.HasPrefix(pkg, module) && slices.Contains([]string{"ir/lm", "ir/models"}, name) {
			t.Errorf("the module has %s", pkg)
		}
	}
}

// TestTheRootNeedsNoC asserts that a program that imports the root, with the CPU as its
// device, is static where cgo is off: no package of ours or of others has C in it.
func TestTheRootNeedsNoC(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", `{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}`, ".")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if with := strings.Fields(string(out)); len(with) > 0 {
		t.Errorf("there is C in %v", with)
	}
}

// TestSamplesAreForTests asserts that programs and the wasm module do not import samples, and that
// every package that iterates over the samples of all ops imports them: without the import there
// would be none.
func TestSamplesAreForTests(t *testing.T) {
	const samples = module + "/ir/ops/samples"
	format := strings.Join([]string{"{{.ImportPath}}", "{{.Dir}}", `{{join .GoFiles ","}},{{join .TestGoFiles ","}},{{join .XTestGoFiles ","}}`, `{{join .Deps ","}}`}, "|")
	out, err := exec.Command("go", "list", "-test", "-f", format, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	needs, callers := map[string]bool{}, []string(nil)
	for line := range strings.Lines(string(out)) {
		part := strings.Split(strings.TrimSpace(line), "|")
		pkg := part[0]
		needs[pkg] = slices.ContainsFunc(strings.Split(part[3], ","), func(dep string) bool {
			path, _, _ := strings.Cut(dep, " ") // as a test compiles it
			return path == samples
		})
		calls := slices.ContainsFunc(strings.Split(part[2], ","), func(name string) bool {
			text, err := os.ReadFile(filepath.Join(part[1], name))
			return err == nil && strings.Contains(string(text), ".Samples()")
		})
		if calls && pkg != module && !strings.Contains(pkg, " ") {
			callers = append(callers, pkg)
		}
	}
	for _, pkg := range []string{"", "/ir/ops", "/ir/ops/splat", "/ir/ops/spd", "/autodiff/optim", "/native/cpu", "/native/cuda", "/wasm/internal/compiler"} {
		if needs[module+pkg] {
			t.Errorf("%s%s imports %s", module, pkg, samples)
		}
	}
	for _, pkg := range callers {
		if !needs[pkg+".test"] && !needs[pkg] {
			t.Errorf("%s calls Samples and does not import %s", pkg, samples)
		}
	}
}
