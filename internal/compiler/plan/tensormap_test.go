package plan_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// withTensorMap is the plan of package plantest with a kernel that copies parts of a matrix of
// 2×32 f32, which it only reads.
func withTensorMap() *plan.Plan {
	p := plantest.Linear()
	k := p.Kernels[0]
	k.Name, k.Storage = "mapped", []loop.Access{loop.Read}
	k.ScalarBytes, k.Counters = 0, 0
	k.TensorMaps = []plan.TensorMap{{TensorMap: loop.TensorMap{Dims: []int{32, 2}, Strides: []int{32}, Size: []int{32, 8}}, DType: dtype.F32}}
	p.Kernels = append(p.Kernels, k)
	p.Entries = append(p.Entries, plan.Entry{Name: "copy", Steps: []plan.Step{
		&plan.Dispatch{Kernel: len(p.Kernels) - 1, Groups: [3]int{1, 1, 1}, Bindings: []plan.Binding{{Buffer: 1, Bytes: 256}}},
	}})
	return p
}

// tensorMapCases are changes of that plan, as those of [refused].
var tensorMapCases = []planCase{
	{"nothing", func(*plan.Plan) {}, 0, "", false},
	{"an array that is not there", func(p *plan.Plan) { mapOf(p).Array = 1 }, 43, "no storage array", false},
	{"an atomic array", func(p *plan.Plan) {
		mappedKernel(p).Storage[0] = loop.Atomic
		p.Entries[len(p.Entries)-1].Steps[0].(*plan.Dispatch).Bindings[0].Buffer = 3
	}, 43, "no storage array", false},
	{"a tensor map beyond the window", func(p *plan.Plan) { mapOf(p).Dims[1] = 3 }, 43, "beyond the 64 elements", false},
	{"a tensor map of very many rows", func(p *plan.Plan) { mapOf(p).Dims[1] = math.MaxInt }, 43, "beyond the 64 elements", false},
	{"rows that lie far apart", func(p *plan.Plan) { mapOf(p).Strides[0] = math.MaxInt &^ 3 }, 43, "beyond the 64 elements", false},
	{"no axes", func(p *plan.Plan) { mapOf(p).TensorMap = loop.TensorMap{} }, 43, "0 axes", false},
	{"a type that is not copied", func(p *plan.Plan) { mapOf(p).DType = dtype.I32 }, 43, "a tensor map of i32", false},
}

func mappedKernel(p *plan.Plan) *plan.Kernel { return &p.Kernels[len(p.Kernels)-1] }

func mapOf(p *plan.Plan) *plan.TensorMap { return &mappedKernel(p).TensorMaps[0] }

func TestRulesOfTensorMaps(t *testing.T) { rulesHold(t, withTensorMap, tensorMapCases) }

func TestPlansWithTensorMapsInFiles(t *testing.T) {
	b := readBack(t, withTensorMap())
	section := strings.Index(string(b), "BOXS")
	if b[section+4] != 1 {
		t.Error("readers may step over the tensor maps")
	}
	b[section+20] = 99 // the kernel of the tensor map
	if _, err := plan.Decode(seal(b)); !errors.Is(err, plan.ErrDamaged) || !strings.Contains(err.Error(), "kernel 99") {
		t.Errorf("a tensor map of a kernel that is not there: %v", err)
	}
}

// The tensor maps of kernels go into the plan, with the numbers of their storage arrays.
func TestProductsOfWarpGroupsHaveTensorMaps(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x, y := b.Input("x", ir.BF16, ir.Dims(1024, 512)...), b.Input("y", ir.BF16, ir.Dims(512, 1024)...)
		b.Output("z", ops.MatMul(b, x, y))
	})
	if err != nil {
		t.Fatal(err)
	}
	p := compiledForTensorMaps(t, g)
	want := []plan.TensorMap{
		{TensorMap: loop.TensorMap{Array: 0, Dims: []int{512, 1024}, Strides: []int{512}, Size: []int{64, 128}}, DType: ir.BF16},
		{TensorMap: loop.TensorMap{Array: 1, Dims: []int{1024, 512}, Strides: []int{1024}, Size: []int{64, 64}}, DType: ir.BF16},
	}
	if got := p.Kernels[0].TensorMaps; !reflect.DeepEqual(got, want) {
		t.Errorf("tensor maps %+v, want %+v", got, want)
	}
}

// compiledForTensorMaps is a graph's plan for a target with tensor maps.
func compiledForTensorMaps(t *testing.T, g *ir.Graph) *plan.Plan {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	target := plan.WebGPU()
	target.Dialect, target.Mma, target.TensorMaps, target.MmaBytes, target.Multiprocessors = dtype.CUDA, true, true, 227<<10, 132
	p, err := plan.Compile(m, target, printed{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestConvolutionsOfPlanesHaveTensorMaps convolves planes, forward and for both gradients: images are transposed to channels last
// before, and the convolution and its gradient by images copy them by tensor maps.
func TestConvolutionsOfPlanesHaveTensorMaps(t *testing.T) {
	g, err := ir.Build("loss", func(b *ir.Builder) {
		x, w := b.Param("x", ir.BF16, ir.Dims(16, 64, 28, 28)...), b.Param("w", ir.BF16, ir.Dims(64, 64, 3, 3)...)
		y := ops.ConvGeneral(b, x, w, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		b.Output("loss", ops.ReduceSum(b, ops.Square(b, ops.Convert(b, y, ir.F32))))
	})
	if err == nil {
		g, err = autodiff.Grad(g, "loss")
	}
	if err != nil {
		t.Fatal(err)
	}
	copied := 0
	for _, k := range compiledForTensorMaps(t, g).Kernels {
		if strings.HasPrefix(k.Name, "contract_conv") && len(k.TensorMaps) > 0 {
			copied++
		}
		if strings.Contains(k.Name, "left_relayout") {
			t.Errorf("%s copies images for one convolution", k.Name)
		}
	}
	if copied < 2 {
		t.Errorf("%d convolutions by tensor maps, want 2", copied)
	}
}

// printed prints kernels of CUDA as their text form.
type printed struct{}

func (printed) Dialect() dtype.Dialect               { return dtype.CUDA }
func (printed) Print(k *loop.Kernel) (string, error) { return k.String(), nil }
