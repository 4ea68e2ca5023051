package wgsl_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native/backendtest"
)

// node runs a script of this package's check folder.
func node(t *testing.T, stdin []byte, args ...string) (stdout []byte, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", args...)
	var out, messages bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &messages
	err = cmd.Run()
	if messages.Len() > 0 {
		t.Logf("%s", messages.Bytes())
	}
	return out.Bytes(), err
}

func TestTintAcceptsGoldenShaders(t *testing.T) {
	out, err := node(t, nil, "check/tint.mjs", "testdata")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// request is the input of check/run.mjs.
type request struct {
	Source   string  `json:"source"`
	Groups   [3]int  `json:"groups"`
	Arrays   []array `json:"arrays"`
	Scalars  []byte  `json:"scalars"`
	Counters []int   `json:"counters"`
}

type array struct {
	Data  []byte `json:"data"`
	Write bool   `json:"write"`
}

func TestShadersOnDawnEqualPlainLoops(t *testing.T) {
	t.Run("lavapipe", func(t *testing.T) {
		testDawn(t, "lavapipe", slices.Concat(kerneltest.Cases(), kerneltest.Half(), kerneltest.AtomicFloats(), []*kerneltest.Case{kerneltest.Shuffled(8)}))
	})
	t.Run("swiftshader", func(t *testing.T) {
		testDawn(t, "swiftshader", slices.Concat(kerneltest.Cases(), kerneltest.AtomicFloats(), []*kerneltest.Case{kerneltest.Shuffled(4)}))
	})
}

// testDawn runs kernels through Dawn on a backend.
func testDawn(t *testing.T, backend string, cases []*kerneltest.Case) {
	var requests []request
	for _, c := range cases {
		source, err := wgsl.Print(c.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		r := request{Source: source, Groups: c.Kernel.Groups, Counters: append([]int{}, c.Counters...)}
		for i, a := range c.Storage() {
			r.Arrays = append(r.Arrays, array{kerneltest.Encode(a.DType, c.Arrays[i]), a.Access != loop.Read})
		}
		if len(c.Scalars) > 0 {
			r.Scalars = kerneltest.EncodeScalars(c.Kernel.Scalars, c.Scalars)
		}
		requests = append(requests, r)
	}
	stdin, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	out, err := node(t, stdin, "check/run.mjs", "--backend="+backend)
	backendtest.Require(t, "webgpu", err)
	var results [][][]byte
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		var got [][]float64
		for j, a := range c.Storage() {
			got = append(got, kerneltest.Decode(a.DType, results[i][j]))
		}
		if err := c.Compare(got); err != nil {
			t.Error(err)
		}
	}
}
