package wasmsimd_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scaled is y[i] = f(x[i]) over lanes.
func scaled(t dtype.DType, n int, f func(x scalar.Expr) scalar.Expr) *loop.Kernel {
	i := scalar.NewVar("i", dtype.I32, 0, int64(n-1))
	return &loop.Kernel{
		Name: "scaled", Workgroup: [3]int{1, 1, 1}, Groups: [3]int{1, 1, 1},
		Arrays: []loop.Array{{Name: "x", DType: t, Width: 1, Len: n}, {Name: "y", DType: t, Width: 1, Len: n, Access: loop.ReadWrite}},
		Body: []loop.Stmt{&loop.For{
			Var: "i", Start: loop.Int(0), End: loop.Int(n), Step: loop.Int(1), Lanes: true,
			Body: []loop.Stmt{&loop.Store{Array: 1, At: i, Value: f(scalar.LoadAt(0, t, i))}},
		}},
	}
}

func double(x scalar.Expr) scalar.Expr { return scalar.Add(x, x) }

func print(t *testing.T, k *loop.Kernel) string {
	t.Helper()
	code, err := wasmsimd.Printer{}.Print(k)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// sections returns the contents of a module's sections by number, in order.
func sections(t *testing.T, module []byte) map[byte][]byte {
	t.Helper()
	// "\0asm", version 1: section 5.5.16 of the WebAssembly specification.
	if !strings.HasPrefix(string(module), "\x00asm\x01\x00\x00\x00") {
		t.Fatalf("the module begins with % x", module[:8])
	}
	out, last := map[byte][]byte{}, byte(0)
	for rest := module[8:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if id <= last || n <= 0 || int(size) > len(rest)-1-n {
			t.Fatalf("section %d of %d bytes after section %d", id, size, last)
		}
		out[id], rest, last = rest[1+n:1+n+int(size)], rest[1+n+int(size):], id
	}
	return out
}

func TestModuleOfKernels(t *testing.T) {
	codes := []string{
		print(t, scaled(dtype.F32, 10, double)),
		print(t, scaled(dtype.I64, 3, double)),
	}
	s := sections(t, wasmsimd.Link(codes))
	// Two functions of one type, (i32, i32) → (), and one memory, of any size up to 4 GiB.
	if got, want := string(s[1]), "\x01\x60\x02\x7f\x7f\x00"; got != want {
		t.Errorf("types % x, want % x", got, want)
	}
	if got, want := string(s[2]), "\x01\x03rlx\x06memory\x02\x01\x00\x80\x80\x04"; got != want {
		t.Errorf("imports %q, want %q", got, want)
	}
	if got, want := string(s[3]), "\x02\x00\x00"; got != want {
		t.Errorf("functions % x, want % x", got, want)
	}
	if got, want := string(s[7]), "\x02\x02k0\x00\x00\x02k1\x00\x01"; got != want {
		t.Errorf("exports %q, want %q", got, want)
	}
	if s[10][0] != 2 {
		t.Errorf("%d bodies, want 2", s[10][0])
	}
}

// Instructions by their encodings in the specification's index of instructions.
const (
	loadLanes  = "\xfd\x00\x02\x00"
	addLanes   = "\xfd\xe4\x01"
	relaxedAdd = "\xfd\x85\x02"
	callSine   = "\x10\x04"
)

func TestVectorizedTypes(t *testing.T) {
	for _, c := range []struct {
		name  string
		k     *loop.Kernel
		lanes bool
	}{
		{"f32", scaled(dtype.F32, 8, double), true},
		{"f32 with a rest", scaled(dtype.F32, 11, double), true},
		{"f64", scaled(dtype.F64, 8, double), false},
		{"by way of f64", scaled(dtype.F32, 8, func(x scalar.Expr) scalar.Expr {
			return scalar.Convert(double(scalar.Convert(x, dtype.F64)), dtype.F32)
		}), false},
	} {
		if got := strings.Contains(print(t, c.k), loadLanes); got != c.lanes {
			t.Errorf("%s: vectors: %t, want %t", c.name, got, c.lanes)
		}
	}
}

// TestNarrowRowsAreLoadedAndStoredAtOnce has eight elements: two vectors. The
// encodings are those of the specification's index of instructions.
func TestNarrowRowsAreLoadedAndStoredAtOnce(t *testing.T) {
	for d, c := range map[dtype.DType]struct{ load, store string }{
		dtype.I16: {"\xfd\x03\x01\x00", "\xfd\x5b\x01\x00\x00"}, // v128.load16x4_s, v128.store64_lane 0
		dtype.F16: {"\xfd\x04\x01\x00", "\xfd\x5b\x01\x00\x00"}, // v128.load16x4_u
		// v128.load32_zero, i16x8.extend_low_i8x16_s, i32x4.extend_low_i16x8_s; v128.store32_lane 0
		dtype.I8: {"\xfd\x5c\x00\x00\xfd\x87\x01\xfd\xa7\x01", "\xfd\x5a\x00\x00\x00"},
		dtype.U8: {"\xfd\x5c\x00\x00\xfd\x89\x01\xfd\xa9\x01", "\xfd\x5a\x00\x00\x00"},
	} {
		code := print(t, scaled(d, 8, func(x scalar.Expr) scalar.Expr { return x }))
		if strings.Count(code, c.load) != 2 || strings.Count(code, c.store) > 2 || !strings.Contains(code, c.store) {
			t.Errorf("%s: % x", d, code)
		}
	}
}

func TestRelaxedAddsProductsInOneInstruction(t *testing.T) {
	k := scaled(dtype.F32, 8, func(x scalar.Expr) scalar.Expr {
		return scalar.Add(scalar.ConstF(dtype.F32, 0.5), scalar.Mul(x, scalar.ConstF(dtype.F32, 3)))
	})
	for _, relaxed := range []bool{false, true} {
		code, err := wasmsimd.Printer{Relaxed: relaxed}.Print(k)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(code, relaxedAdd) != relaxed || strings.Contains(code, addLanes) == relaxed {
			t.Errorf("relaxed %t: % x", relaxed, code)
		}
	}
}

func TestFunctionsOfDoublesAreThoseOfMath(t *testing.T) {
	code := print(t, scaled(dtype.F64, 3, scalar.Sin))
	if !strings.Contains(code, callSine) {
		t.Errorf("% x calls no function 4", code)
	}
	if s := sections(t, wasmsimd.Link([]string{code})); !strings.Contains(string(s[2]), "\x04Math\x03sin\x00") {
		t.Errorf("imports %q", s[2])
	}
}

func TestUnsupportedKernelsAreRefused(t *testing.T) {
	wide := scaled(dtype.F32, 8, double)
	wide.Workgroup[0] = 64
	for _, c := range []struct {
		name string
		k    *loop.Kernel
		want string
	}{
		{"threads", wide, "workgroup of 64 threads"},
		{"type", scaled(dtype.C64, 8, double), "type c64"},
		{"arithmetic in 16 bits", scaled(dtype.F16, 8, double), "add of f16"},
		{"operation", scaled(dtype.F64, 8, scalar.Erf), "erf of f64"},
	} {
		_, err := wasmsimd.Printer{}.Print(c.k)
		var lacks *wasmsimd.UnsupportedError
		if !errors.As(err, &lacks) || lacks.What != c.want || !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("%s: %v, want no %s", c.name, err, c.want)
		}
	}
	broken := scaled(dtype.F32, 8, double)
	broken.Body = append(broken.Body, &loop.Assign{Name: "z", Value: loop.Int(1)})
	var faulty *loop.CheckError
	if _, err := (wasmsimd.Printer{}).Print(broken); !errors.As(err, &faulty) {
		t.Errorf("an assignment to nothing: %v", err)
	}
}

func TestPlansAreForEveryEngine(t *testing.T) {
	g, err := ir.Build("product", func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("a", ir.F32, ir.Dims(20, 30)...), b.Input("b", ir.F32, ir.Dims(30, 40)...)))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("product", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	plans, err := wasmsimd.Plans(m)
	if err != nil {
		t.Fatal(err)
	}
	if features := plans[0].Requires.Features; len(features) != 1 || features[0] != "relaxed-simd" || len(plans[1].Requires.Features) != 0 {
		t.Errorf("features %v and %v", features, plans[1].Requires.Features)
	}
	for i, p := range plans {
		if strings.Contains(string(p.Code), relaxedAdd) != (i == 0) {
			t.Errorf("plan %d: relaxed instructions: %t", i, i != 0)
		}
		file, err := plan.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := plan.Decode(file)
		if err != nil || string(back.Code) != string(p.Code) {
			t.Errorf("plan %d is not what was written: %v", i, err)
		}
	}
}

func TestScalesOfBlocksAreConvertedOnce(t *testing.T) {
	// A function that converts the scales for each vector of four has 1,621 and 5,163 bytes.
	for format, most := range map[string]int{"q8_0": 1000, "q4_1": 1000} {
		_, bytes, _ := ops.PackedBlock(format)
		g, err := ir.Build("unpack", func(b *ir.Builder) {
			b.Output("y", ops.Dequantize(b, b.Input("x", ir.U8, ir.Dims(2048, bytes)...), format, ir.F32))
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := ir.NewModule("unpack", ir.Entry{Name: "run", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		plans, err := wasmsimd.Plans(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			if len(p.Code) > most {
				t.Errorf("%s: the code has %d bytes, more than %d", format, len(p.Code), most)
			}
		}
	}
}
