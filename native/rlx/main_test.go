package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/internal/workload"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/safetensors"
	"github.com/rlx-go/rlx/webgpu"
)

var update = flag.Bool("update", false, "write the golden files")

// call runs a command line and returns the exit status and its output.
func call(t *testing.T, stdin string, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, stdio{strings.NewReader(stdin), &o, &e})
	return code, o.String(), e.String()
}

// times are the parts of an output that differ from run to run.
var times = regexp.MustCompile(`[0-9.e+-]+ (ms|steps/s)|"ms": [0-9.]+`)

// TestWithoutDisplay sets a display of no socket where there is none alone.
func TestWithoutDisplay(t *testing.T) {
	for _, c := range []struct{ folder, display, want string }{{"", "", os.DevNull}, {"/run/user/1", "", ""}, {"", "/tmp/wayland", "/tmp/wayland"}} {
		t.Setenv("XDG_RUNTIME_DIR", c.folder)
		t.Setenv("WAYLAND_DISPLAY", c.display)
		if withoutDisplay(); os.Getenv("WAYLAND_DISPLAY") != c.want {
			t.Errorf("%+v: WAYLAND_DISPLAY is %q", c, os.Getenv("WAYLAND_DISPLAY"))
		}
	}
}

// processor matches the description of this machine's processor.
var processor = regexp.MustCompile(`("description": ")[^"]*`)

// TestGolden compares the output of commands with files. -update writes them.
func TestGolden(t *testing.T) {
	file := filepath.Join("testdata", "scale.txt")
	made := filepath.Join(t.TempDir(), "scale.rlxp")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"help", []string{"help"}},
		{"help-show", []string{"help", "show"}},
		{"help-train", []string{"train", "-h"}},
		{"check", []string{"check", file, "-device", "cpu", "-all"}},
		{"check-json", []string{"check", "-json", "-device=cpu", "-size", "batch=2", file}},
		{"show", []string{"show", file, "-size", "batch=4", "-part", "graph,groups,kernels,memory", "-entry", "scale"}},
		{"show-json", []string{"show", file, "-size", "batch=4", "-json"}},
		{"run", []string{"run", file, "-device", "cpu", "-in", "x=[[1,2],[3,4]]"}},
		{"run-json", []string{"run", file, "-size", "batch=2", "-device", "cpu", "-in", "x=[1,2,3,4]", "-json"}},
		{"plan", []string{"plan", file, "-size", "batch=4", "-o", made}},
		{"check-plan", []string{"check", made}},
		{"show-plan", []string{"show", made}},
		{"check-onnx", []string{"check", filepath.Join("testdata", "tiny.onnx"), "-device", "cpu"}},
		{"run-onnx", []string{"run", filepath.Join("testdata", "tiny.onnx"), "-device", "cpu", "-in", "x=[[2,4]]"}},
		{"help-generate", []string{"help", "generate"}},
		{"help-serve", []string{"help", "serve"}},
		{"help-convert", []string{"help", "convert"}},
		{"help-perplexity", []string{"help", "perplexity"}},
		{"completion-bash", []string{"completion", "bash"}},
		{"completion-fish", []string{"completion", "fish"}},
	} {
		code, out, stderr := call(t, "", c.args...)
		if code != 0 || stderr != "" {
			t.Errorf("%v: exit status %d, %s", c.args, code, stderr)
		}
		out = processor.ReplaceAllString(times.ReplaceAllString(strings.ReplaceAll(out, made, "scale.rlxp"), "TIME"), "${1}CPU")
		golden := filepath.Join("testdata", c.name+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(out), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != out {
			t.Errorf("%v: %v\n%s\nnot\n%s", c.args, err, out, want)
		}
	}
}

// TestWrongCommandLines runs wrong command lines and files: each has its exit status and an error
// that names the fault.
func TestWrongCommandLines(t *testing.T) {
	file := filepath.Join("testdata", "scale.txt")
	folder := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	broken, cut := write("broken.txt", "graph \"g\" {\n  %0 = input \"x\"\n"), write("cut.rlxp", "RLXP\x01\x00")
	torn := write("torn.onnx", "\xff\xff")
	data := filepath.Join(folder, "data.safetensors")
	if err := safetensors.WriteFile(data, rlx.Inputs{"x": rlx.Float32s([]float32{1, 2}, 1, 2)}, nil); err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(folder, "both.safetensors")
	if err := safetensors.WriteFile(both, rlx.Inputs{"x": rlx.Float32s([]float32{1, 2}, 1, 2), "y": rlx.Float32s([]float32{1, 2}, 1, 2)}, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{nil, exitUsage, "usage: rlx COMMAND"},
		{[]string{"fly"}, exitUsage, `unknown command "fly"`},
		{[]string{"help", "fly"}, exitUsage, `unknown command "fly": `},
		{[]string{"trian"}, exitUsage, `unknown command "trian", nearest is "train"`},
		{[]string{"train", "--optimiser", "sgd"}, exitUsage, `unknown flag -optimiser, nearest is "-optimizer"`},
		{[]string{"train", file, "-zzz"}, exitUsage, "unknown flag -zzz\n"},
		{[]string{"train", file, "-data", data, "-steps", "0"}, exitUsage, "-steps is 0"},
		{[]string{"train", file, "-entry", "loss", "-size", "batch=1", "-data", "x.npy"}, exitError, "numpy.savez"},
		{[]string{"train", file, "-entry", "loss", "-size", "batch=1", "-data", data, "-save", os.DevNull}, exitError, "no regular file"},
		{[]string{"devices", "cpu"}, exitUsage, `unknown argument "cpu"`},
		{[]string{"launch", "-n", "2"}, exitUsage, "needs a program"},
		{[]string{"launch", "-n", "1000000", "--", "true"}, exitUsage, "from 1 to 4096"},
		{[]string{"launch", "-n", "2", "--", "absent-program", "-n"}, exitError, "absent-program"},
		{[]string{"check"}, exitUsage, "FILE is missing"},
		{[]string{"check", file, file}, exitUsage, "one must be given"},
		{[]string{"check", "-colour", file}, exitUsage, "-colour"},
		{[]string{"check", "absent.txt"}, exitError, "absent.txt"},
		{[]string{"check", broken}, exitError, "broken.txt:3:"},
		{[]string{"check", cut}, exitError, "damaged plan"},
		{[]string{"check", torn}, exitError, "damaged ONNX"},
		{[]string{"show", filepath.Join("testdata", "tiny.onnx")}, exitUsage, "-size batch=8"},
		{[]string{"show", filepath.Join("testdata", "tiny.onnx"), "-size", "batch=1,depth=1"}, exitUsage, "names no symbol"},
		{[]string{"check", file, "-device", "abacus"}, exitError, `unknown device "abacus"`},
		{[]string{"show", file}, exitUsage, "-size batch=8"},
		{[]string{"show", file, "-size", "batch"}, exitUsage, "as batch=8"},
		{[]string{"show", file, "-size", "batch=0"}, exitUsage, "as batch=8"},
		{[]string{"show", file, "-size", "batch=1", "-size", "batch=2"}, exitUsage, "a symbol has one size"},
		{[]string{"run", file, "-size", "batch=1", "-seed", "4294967296"}, exitUsage, "from 0 to 4294967295"},
		{[]string{"show", file, "-size", "batch=1,depth=2"}, exitUsage, "names no symbol"},
		{[]string{"show", file, "-size", "batch=1", "-target", "abacus"}, exitUsage, "unknown target"},
		{[]string{"show", file, "-size", "batch=1", "-part", "all"}, exitUsage, "unknown part"},
		{[]string{"show", file, "-size", "batch=1", "-entry", "eval"}, exitUsage, "unknown entry"},
		{[]string{"show", file, "-size", "batch=1", "-entry", "scale", "-svg", folder}, exitError, folder},
		{[]string{"run", file, "-size", "batch=1", "-in", "x=[1,"}, exitUsage, "must be a number or lists"},
		{[]string{"run", file, "-size", "batch=1", "-in", "x=@absent.json"}, exitUsage, "absent.json"},
		{[]string{"run", file, "-size", "batch=1", "-in", `x=["a","b"]`}, exitError, "numbers alone"},
		{[]string{"run", file, "-size", "batch=1", "-in", "x=[1,2,3]"}, exitError, "it must have 2"},
		{[]string{"run", file, "-in", "x=[1,2]"}, exitUsage, "add -size batch"},
		{[]string{"run", file, "-in", "x=[[1,2],[3]]", "-device", "cpu"}, exitError, "lists of the sizes [2 2]"},
		{[]string{"run", file, "-size", "batch=1", "-in", "z=1"}, exitUsage, `unknown input "z"`},
		{[]string{"run", file, "-size", "batch=2", "-in", data, "-device", "cpu"}, exitError, "shape mismatch"},
		{[]string{"run", file, "-size", "batch=1", "-weights", data, "-device", "cpu"}, exitError, `missing ["w"]`},
		{[]string{"run", file, "-size", "batch=1", "-precision", "f8"}, exitUsage, "unknown precision"},
		{[]string{"run", file, "-size", "batch=1", "-device", "cpu,"}, exitError, "empty name"},
		{[]string{"bench", file, "-size", "batch=1", "-time", "0s"}, exitUsage, "more than 0"},
		{[]string{"train", file, "-size", "batch=1"}, exitUsage, "-data is missing"},
		{[]string{"train", file, "-size", "batch=1", "-entry", "loss", "-data", data}, exitError, `no tensor "y"`},
		{[]string{"train", file, "-size", "batch=1", "-data", both, "-device", "cpu", "-entry", "loss", "-log", folder}, exitError, folder},
		{[]string{"train", file, "-size", "batch=1", "-data", both, "-device", "cpu", "-entry", "loss", "-events", both}, exitError, both},
		{[]string{"train", file, "-size", "batch=1", "-data", data, "-optimizer", "magic"}, exitUsage, "unknown optimizer"},
		{[]string{"plan", file, "-size", "batch=1", "-target", "cuda"}, exitUsage, "unknown or given twice"},
		{[]string{"plan", file, "-size", "batch=1", "-o", folder}, exitError, folder},
		{[]string{"plan", file, "-buckets", "bach=1..8"}, exitUsage, "batch"},
		{[]string{"plan", file, "-size", "batch=1", "-buckets", "bach=1..8"}, exitUsage, "-buckets bach names no symbol"},
		{[]string{"plan", file, "-size", "batch=1", "-buckets", "batch=1,2"}, exitUsage, "give one of them"},
		{[]string{"plan", file, "-buckets", "batch=8..1"}, exitUsage, "must be a name and sizes"},
		{[]string{"plan", file, "-buckets", "batch=2", "-exact", "seq"}, exitUsage, "-exact seq has no -buckets"},
		{[]string{"completion", "tcsh"}, exitUsage, "unknown shell"},
	} {
		code, out, stderr := call(t, "", c.args...)
		if code != c.code || !strings.Contains(stderr, c.text) || out != "" {
			t.Errorf("%v: exit status %d, not %d: %s%s", c.args, code, c.code, stderr, out)
		}
	}
}

// TestCheckFailsForWhatNoDeviceComputes checks a graph of a type that kernels do not have.
func TestCheckFailsForWhatNoDeviceComputes(t *testing.T) {
	text := "graph \"g\" {\n  %0 = input \"x\" : f64[4]\n  %1 = exp(%0) : f64[4]\n  output \"y\" = %1\n}\n"
	if code, out, err := call(t, text, "check", "-", "-device", "cpu"); code != 0 {
		t.Errorf("exit status %d: %s%s", code, out, err)
	}
	err := writeReports(io.Discard, []*rlx.DeviceReport{{}}, false, false)
	if err != nil {
		t.Errorf("a graph without nodes: %v", err)
	}
	if err := writeReports(io.Discard, nil, false, false); !errors.Is(err, errCannot) {
		t.Errorf("no device: %v", err)
	}
}

// TestTrainLearns trains w of y = w·x from files, resumes, and serves the result.
func TestTrainLearns(t *testing.T) {
	folder := t.TempDir()
	data, weights := filepath.Join(folder, "data.npz"), filepath.Join(folder, "w.safetensors")
	x, y := ir.NewArray(ir.F64, 32, 2), ir.NewArray(ir.F64, 32, 2) // NumPy's default type
	for i := range x.F {
		x.F[i] = float64(i%7) - 3
		y.F[i] = x.F[i] * []float64{2, -1}[i%2]
	}
	if err := writeTensors(data, rlx.Inputs{"x": native.FromArray(x), "y": native.FromArray(y)}); err != nil {
		t.Fatal(err)
	}
	train := []string{
		"train", filepath.Join("testdata", "scale.txt"), "-entry", "loss", "-size", "batch=8", "-data", data, "-device", "cpu",
		"-rate", "0.05", "-every", "50", "-checkpoints", filepath.Join(folder, "steps"), "-save", weights,
		"-log", filepath.Join(folder, "log.jsonl"), "-events", filepath.Join(folder, "events"),
	}
	for _, steps := range []string{"150", "300"} { // the second goes on from the checkpoint of the first
		code, out, err := call(t, "", append(train, "-steps", steps)...)
		if code != 0 || !strings.HasPrefix(out, "step "+steps+"/"+steps) || !strings.Contains(err, "device cpu: ") {
			t.Fatalf("exit status %d: %s%s", code, out, err)
		}
	}
	if lines, err := os.ReadFile(filepath.Join(folder, "log.jsonl")); err != nil || bytes.Count(lines, []byte("\n")) != 6 {
		t.Errorf("the log is %s, %v", lines, err) // after each 50 of 300 steps
	}
	if files, err := filepath.Glob(filepath.Join(folder, "events", "*")); err != nil || len(files) != 2 {
		t.Errorf("event files %v, %v", files, err)
	}
	code, out, stderr := call(t, "", append(train, "-steps", "300")...)
	if code != 0 || !strings.Contains(out, "leaves none to do") || !strings.Contains(stderr, "no steps left") || strings.Contains(stderr, "NaN") {
		t.Errorf("nothing left to do: exit status %d: %s%s", code, out, stderr)
	}
	result := filepath.Join(folder, "y.npz")
	code, out, stderr = call(t, "", "run", filepath.Join("testdata", "scale.txt"), "-size", "batch=1", "-in", "x=[1,1]", "-weights", weights, "-out", result, "-json", "-device", "cpu")
	var r runJSON
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit status %d: %s%s, %v", code, out, stderr, err)
	}
	if got := r.Outputs["y"].Data; len(got) != 2 || got[0] < 1.99 || got[0] > 2.01 || got[1] < -1.01 || got[1] > -0.99 {
		t.Errorf("it learned %v, not 2 and -1", got)
	}
	if written, err := readTensors(result); err != nil || len(written["y"].Dims) != 2 {
		t.Errorf("%v, %v", written, err)
	}
}

// TestTrainKeepsAFileWithoutASuccess trains on NaN, and on too few rows for a batch: the file of -save stays as it was.
func TestTrainKeepsAFileWithoutASuccess(t *testing.T) {
	for want, row := range map[string]float32{"the loss is NaN": float32(math.NaN()), "they must fill a batch of 2": 1} {
		folder := t.TempDir()
		data, weights := filepath.Join(folder, "data.npz"), filepath.Join(folder, "w.npz")
		x, batch := rlx.Float32s([]float32{1, row}, 1, 2), "batch=1"
		if row == 1 {
			batch = "batch=2"
		}
		if err := writeTensors(data, rlx.Inputs{"x": x, "y": x}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(weights, []byte("weights"), 0o666); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := call(t, "", "train", filepath.Join("testdata", "scale.txt"), "-entry", "loss", "-size", batch, "-data", data, "-device", "cpu", "-steps", "3", "-save", weights)
		if code != exitError || !strings.Contains(stderr, want) || !strings.Contains(stderr, "w.npz is not written") {
			t.Errorf("exit status %d: %s", code, stderr)
		}
		if kept, err := os.ReadFile(weights); err != nil || string(kept) != "weights" {
			t.Errorf("the file is %q, %v", kept, err)
		}
	}
}

// TestRunsPlans runs and measures a plan with variants on WebGPU, as a graph of the same inputs and weights.
func TestRunsPlans(t *testing.T) {
	backendtest.Require(t, "webgpu", webgpu.Backend().Probe())
	folder := t.TempDir()
	made := filepath.Join(folder, "scale.rlxp")
	if code, _, stderr := call(t, "", "plan", filepath.Join("testdata", "scale.txt"), "-size", "batch=4", "-target", "wasm,webgpu", "-o", made); code != 0 {
		t.Fatal(stderr)
	}
	w := filepath.Join(folder, "w.npz")
	if err := writeTensors(w, rlx.Outputs{"w": rlx.Float32s([]float32{1, 2}, 2)}); err != nil {
		t.Fatal(err)
	}
	x := "x=[[1,2],[0,0.5],[-1,0],[3,4]]"
	outputs := func(args ...string) map[string]summary {
		code, stdout, stderr := call(t, "", append([]string{"run", "-json", "-weights", w, "-in", x}, args...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		var r runJSON
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		return r.Outputs
	}
	got, want := outputs(made), outputs("-device", "cpu", "-size", "batch=4", filepath.Join("testdata", "scale.txt"))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the plan computes %+v, the graph %+v", got, want)
	}
	code, stdout, stderr := call(t, "", "bench", "-time", "1ms", made)
	if code != 0 || !strings.Contains(stdout, "on webgpu") {
		t.Errorf("bench: %d, %s%s", code, stdout, stderr)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", made, "-size", "batch=2"}, exitUsage, "-size is for graphs"},
		{[]string{"run", made, "-precision", "bf16"}, exitUsage, "-precision is for graphs"},
		{[]string{"run", made, "-entry", "walk"}, exitUsage, `unknown entry "walk": have ["scale" "loss"]`},
		{[]string{"run", made, "-device", "cpu"}, exitError, `device "cpu" runs no plan files`},
	} {
		if code, _, stderr := call(t, "", c.args...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit status %d, %q; want %d and %q", c.args, code, stderr, c.code, c.says)
		}
	}
}

// TestRunsPlansOfSizes runs a plan with open sizes, which -size or an input binds, as the graph of that size.
func TestRunsPlansOfSizes(t *testing.T) {
	backendtest.Require(t, "webgpu", webgpu.Backend().Probe())
	folder, file := t.TempDir(), filepath.Join("testdata", "scale.txt")
	made, w := filepath.Join(folder, "open.rlxp"), filepath.Join(folder, "w.npz")
	if code, _, stderr := call(t, "", "plan", file, "-buckets", "batch=2,4", "-target", "webgpu", "-o", made); code != 0 {
		t.Fatal(stderr)
	}
	if err := writeTensors(w, rlx.Outputs{"w": rlx.Float32s([]float32{1, 2}, 2)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", made, "-weights", w, "-in", "x=[[1,2],[0,0.5],[-1,0]]"}, 0, "y  f32[3,2]  min -1  mean 0.8333  max 4  [1 4 0 1 -1 0]"},
		{[]string{"run", made, "-size", "batch=3"}, 0, "y  f32[3,2]"},
		{[]string{"bench", made, "-size", "batch=3", "-time", "1ms"}, 0, "on webgpu"},
		{[]string{"run", made}, exitUsage, "add -size batch=8"},
		{[]string{"run", made, "-size", "bach=3"}, exitUsage, `names no symbol of the model: it has ["batch"]`},
		{[]string{"run", made, "-size", "batch=5"}, exitError, "batch"},
		{[]string{"run", made, "-entry", "walk"}, exitUsage, `unknown entry "walk": have ["scale" "loss"]`},
	} {
		if code, stdout, stderr := call(t, "", c.args...); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%q: exit status %d, %q; want %d and %q", c.args, code, stdout+stderr, c.code, c.says)
		}
	}
}

// TestReportIsWrittenOnce asserts that the last report of a training is not written twice to one file.
func TestReportIsWrittenOnce(t *testing.T) {
	folder := t.TempDir()
	data, name := filepath.Join(folder, "data.npz"), filepath.Join(folder, "both.txt")
	x := rlx.Float32s([]float32{1, 2, 3, 4}, 2, 2)
	if err := writeTensors(data, rlx.Inputs{"x": x, "y": x}); err != nil {
		t.Fatal(err)
	}
	both, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	args := []string{"train", filepath.Join("testdata", "scale.txt"), "-entry", "loss", "-size", "batch=2", "-data", data, "-device", "cpu", "-steps", "2"}
	if code := run(t.Context(), args, stdio{nil, both, both}); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	if written, err := os.ReadFile(name); err != nil || bytes.Count(written, []byte("step 2/2")) != 1 {
		t.Errorf("%s, %v", written, err)
	}
}

// TestVersion prints what a build has about itself.
func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"version", "-json"}} {
		if code, out, stderr := call(t, "", args...); code != 0 || !strings.Contains(out, runtime.Version()) {
			t.Errorf("%q: exit status %d, %s%s", args, code, out, stderr)
		}
	}
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}
	if got := versionOf(info, true).String(); !strings.HasPrefix(got, "rlx v1.2.3, commit abc with changes, go") {
		t.Error(got)
	}
}

// TestPlanOfTraining makes a plan of a training step.
func TestPlanOfTraining(t *testing.T) {
	name := filepath.Join(t.TempDir(), "step.rlxp")
	code, _, stderr := call(t, "", "plan", filepath.Join("testdata", "scale.txt"), "-size", "batch=4", "-train", "-entry", "loss", "-target", "wasm,webgpu", "-o", name)
	if code != 0 {
		t.Fatal(stderr)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Decode(data)
	if err != nil || p.Target != "wasm" || len(p.Variants) != 2 || p.Variants[1].Target != "webgpu" || p.Entry("step") == nil || p.Entry("scale") == nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPlanOfSizes makes a file with a plan for each size, of a training step, too.
func TestPlanOfSizes(t *testing.T) {
	name, file := filepath.Join(t.TempDir(), "open.rlxp"), filepath.Join("testdata", "scale.txt")
	for _, args := range [][]string{nil, {"-train", "-entry", "loss"}} {
		if code, _, stderr := call(t, "", append([]string{"plan", file, "-buckets", "batch=1..4,6", "-target", "wasm", "-o", name}, args...)...); code != 0 {
			t.Fatal(stderr)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		o, err := plan.DecodeOpen(data)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, b := range o.Buckets {
			if b.Entry == 0 {
				sizes = append(sizes, b.Sizes[0])
			}
		}
		if !slices.Equal(sizes, []int{1, 2, 4, 6}) || len(o.Buckets) != 4*len(o.Entries) {
			t.Errorf("%v: sizes %v of %d entries, %d buckets", args, sizes, len(o.Entries), len(o.Buckets))
		}
	}
	if code, _, stderr := call(t, "", "show", name); code != exitError || !strings.Contains(stderr, "a plan for each of several sizes") {
		t.Errorf("show: exit status %d, %q", code, stderr)
	}
}

// TestBenchCountsOperations compares the count of a transformer with that by hand: per token and
// block 2·12·width² for the products of the block, and 2·2·context·width for attention.
func TestBenchCountsOperations(t *testing.T) {
	const width, context, vocab, blocks, batch = 32, 16, 65, 2, 3
	g, err := irtest.GPT{Vocab: vocab, Context: context, Width: width, Heads: 4, Blocks: blocks, Batch: batch}.Loss()
	if err != nil {
		t.Fatal(err)
	}
	want := float64(batch * context * (blocks*(24*width*width+4*context*width) + 2*width*vocab))
	if got := workload.Of(g).Operations; got != want {
		t.Errorf("%v operations, not %v", got, want)
	}
	code, out, stderr := call(t, g.String(), "bench", "-", "-device", "cpu", "-time", "1ms", "-json")
	var b benchJSON
	if err := json.Unmarshal([]byte(out), &b); err != nil || code != 0 || b.Operations != want || b.Runs < 3 || b.Min > b.Median || b.Median > b.P90 || len(b.Kernels) == 0 {
		t.Errorf("exit status %d: %+v, %s, %v", code, b, stderr, err)
	}
	code, out, stderr = call(t, g.String(), "bench", "-", "-device", "cpu", "-time", "1ms")
	if code != 0 || !strings.Contains(out, "TFLOP/s\n") || !strings.Contains(out, "launches") {
		t.Errorf("exit status %d: %s%s", code, out, stderr)
	}
}

// TestPicturesAreWellFormed draws a transformer, and reads the picture as XML: it has a row for each
// stage and a rectangle for each value.
func TestPicturesAreWellFormed(t *testing.T) {
	g, err := irtest.GPT{Vocab: 65, Context: 16, Width: 32, Heads: 4, Blocks: 2, Batch: 3}.Loss()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "gpt.svg")
	for _, target := range targetNames() {
		if code, out, err := call(t, g.String(), "show", "-", "-svg", name, "-target", target); code != 0 || out != name+"\n" {
			t.Fatalf("exit status %d: %s%s", code, out, err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(text)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		v, err := (&showOptions{target: target, parts: "graph"}).load("-", strings.NewReader(g.String()), nil)
		if err != nil {
			t.Fatal(err)
		}
		stages := stagesOf(v.plan, v.entries[0], v.written)
		values := valuesOf(v.plan, v.entries[0], stages)
		if n := bytes.Count(text, []byte(`class="value"`)); n != len(values) || n < 10 {
			t.Errorf("%s: %d values of %d", target, n, len(values))
		}
		if n := bytes.Count(text, []byte(`class="written"`)); n != len(stages) {
			t.Errorf("%s: %d stages of %d", target, n, len(stages))
		}
		checkValues(t, v.plan, values)
	}
}

// checkValues asserts that no two values share bytes while both live, as the planner places them: a
// value that dies may give its memory to one that the same kernel writes.
func checkValues(t *testing.T, p *plan.Plan, values []value) {
	t.Helper()
	for i, a := range values {
		if p.Buffers[a.buffer].Kind != plan.TempBuffer || a.last < a.first {
			t.Errorf("value %+v", a)
		}
		for _, b := range values[:i] {
			if a.overlaps(b.window) && a.first < b.last && b.first < a.last {
				t.Errorf("%+v and %+v overlap", a, b)
			}
		}
	}
}

// TestDevicesListsTheCPU reads the list as JSON, and the table.
func TestDevicesListsTheCPU(t *testing.T) {
	code, out, stderr := call(t, "", "devices", "-json")
	var rows []deviceRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 || len(rows) < 5 {
		t.Fatalf("exit status %d: %s%s, %v", code, out, stderr, err)
	}
	for _, r := range rows {
		if r.Name == "cpu" && (!r.Usable || r.Memory <= 0 || !strings.Contains(r.Description, " core")) || r.Usable == (r.Reason != "") {
			t.Errorf("%+v", r)
		}
	}
	if code, out, _ = call(t, "", "devices"); code != 0 || !strings.HasPrefix(out, "NAME ") || strings.Count(out, "\n") != len(rows)+1 {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

// TestDevicesShowRates lists rates that were kept, in the units of the table.
func TestDevicesShowRates(t *testing.T) {
	t.Setenv(tune.Variable, t.TempDir())
	if err := tune.WriteRates("cpu: "+deviceOf(t, "cpu").Description, rlx.Rates{Operations: 3e10, Bytes: 2e10, Transfer: 5e9, Kernel: 1500, Call: 20_000}); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, "", "devices")
	if code != 0 || !strings.Contains(out, "GFLOP/S") || !regexp.MustCompile(`(?m)^cpu .* 30 +20 +5 +1\.5 +20 +`).MatchString(out) {
		t.Errorf("exit status %d:\n%s%s", code, out, stderr)
	}
}

func deviceOf(t *testing.T, name string) rlx.Device {
	for _, d := range rlx.Devices() {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no device %q", name)
	return rlx.Device{}
}

// TestCancelledCommands ends with the error of the context.
func TestCancelledCommands(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	code := run(ctx, []string{"run", filepath.Join("testdata", "scale.txt"), "-size", "batch=1", "-device", "cpu"}, stdio{strings.NewReader(""), io.Discard, &stderr})
	if code != exitError || !strings.Contains(stderr.String(), "context canceled") {
		t.Errorf("exit status %d: %s", code, stderr.String())
	}
}

// TestRandomInputsKeepToTheBounds draws the indices of an embedding.
func TestRandomInputsKeepToTheBounds(t *testing.T) {
	g, err := irtest.GPT{Vocab: 65, Context: 16, Width: 32, Heads: 4, Blocks: 1, Batch: 3}.Loss()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range g.Ports() {
		if o.Kind == ir.InputPort && o.Value.DType() != ir.I32 {
			t.Fatalf("%s is %s", o.Name, o.Value.DType())
		}
	}
	if code, out, err := call(t, g.String(), "run", "-", "-device", "cpu", "-json"); code != 0 || !strings.Contains(out, `"loss"`) {
		t.Errorf("exit status %d: %s%s", code, out, err)
	}
}
