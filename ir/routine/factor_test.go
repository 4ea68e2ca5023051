package routine_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

// factored runs the reference of a factorisation of f32 matrices, column by column, and returns the matrices, the
// other results and the code.
func factored(t *testing.T, f routine.Factor, x ...float32) (matrices, others []float32, code uint32) {
	t.Helper()
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	var memory [][]byte
	for _, a := range f.Arrays() {
		memory = append(memory, make([]byte, a.Bytes))
	}
	copy(memory[0], floats(x...))
	f.Reference(memory)
	read := func(b []byte) (out []float32) {
		for ; len(b) > 0; b = b[4:] {
			out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return out
	}
	codes := memory[len(memory)-2]
	if f.Op == routine.LUFactor {
		for i := range len(memory[1]) / 8 {
			others = append(others, float32(binary.LittleEndian.Uint64(memory[1][8*i:])))
		}
	} else if f.Op != routine.CholeskyFactor {
		others = read(memory[1])
	}
	return read(memory[0]), others, binary.LittleEndian.Uint32(codes)
}

func near(t *testing.T, name string, got []float32, want ...float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, not %v", name, got, want)
	}
	for i, w := range want {
		if math.Abs(float64(got[i]-w)) > 1e-6 {
			t.Errorf("%s: %v, not %v", name, got, want)
			return
		}
	}
}

// The factors are by hand: [4 2; 2 10] = [2 0; 1 3]·[2 1; 0 3]; rows 1 and 2 of [1 2; 4 6] are swapped and u is
// [4 6; 0 1/2]; [3 1; 4 2] is reflected to a column of -5, with τ = 1 + 3/5 and v = 4/(3+5); and [2 1; 1 2] has
// the eigenvalues 1 and 3.
func TestTheReferenceOfFactors(t *testing.T) {
	f := routine.Factor{Op: routine.CholeskyFactor, DType: dtype.F32, Batch: 1, Rows: 2, Cols: 2, Workspace: 8}
	l, _, code := factored(t, f, 4, 2, 7, 10)
	if near(t, "l", l, 2, 1, 7, 3); code != 0 {
		t.Errorf("the code is %d", code)
	}
	if _, _, code = factored(t, f, 1, 2, 2, 1); code != 2 {
		t.Errorf("the code of an indefinite matrix is %d, not 2", code)
	}
	f.Op = routine.LUFactor
	lu, pivots, _ := factored(t, f, 1, 4, 2, 6)
	near(t, "lu", lu, 4, 0.25, 6, 0.5)
	near(t, "pivots", pivots, 2, 2)
	if lu, _, code = factored(t, f, 0, 0, 1, 2); code != 1 {
		t.Errorf("the code of a singular matrix is %d, not 1", code)
	}
	near(t, "lu of a singular matrix", lu, 0, 0, 1, 2)
	f.Op = routine.HouseholderFactor
	qr, tau, _ := factored(t, f, 3, 4, 1, 2)
	near(t, "qr", qr, -5, 0.5, -2.2, 0.4)
	near(t, "tau", tau, 1.6, 0)
	f.Op = routine.EigenFactor
	v, w, _ := factored(t, f, 2, 1, 9, 2)
	near(t, "w", w, 1, 3)
	if h := float32(math.Sqrt(0.5)); math.Abs(float64(v[0]+v[1])) > 1e-6 || math.Abs(float64(v[2]-v[3])) > 1e-6 || !(math.Abs(math.Abs(float64(v[0]))-float64(h)) <= 1e-6) {
		t.Errorf("the eigenvectors are %v", v)
	}
}

func TestInvalidFactorsAreRefused(t *testing.T) {
	good := routine.Factor{Op: routine.LUFactor, DType: dtype.F64, Batch: 2, Rows: 3, Cols: 5, Workspace: 7}
	back, err := routine.Of(good.Name(), good.Words())
	if err != nil || back != routine.Routine(good) {
		t.Fatalf("%v, %v", back, err)
	}
	for name, words := range map[string][]int{
		"short": {1, int(dtype.F32), 1, 2, 2}, "op": {4, int(dtype.F32), 1, 2, 2, 0}, "type": {1, int(dtype.BF16), 1, 2, 2, 0}, "byte": {257, int(dtype.F32), 1, 2, 2, 0},
		"batch": {1, int(dtype.F32), 0, 2, 2, 0}, "large": {1, int(dtype.F32), 1 << 20, 1 << 20, 1 << 20, 0}, "square": {0, int(dtype.F32), 1, 2, 3, 0}, "workspace": {1, int(dtype.F32), 1, 2, 2, -1},
	} {
		if _, err := routine.Of("factor", words); err == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
}
