//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// tall is a graph whose plan is worth caching; number occurs in its kernels.
func tall(t *testing.T, number float64) *ir.Graph {
	t.Helper()
	g, err := ir.Build("tall", func(b *ir.Builder) {
		h := b.State("total", ir.F32, ir.N(1000))
		for range 600 {
			h = ops.Tanh(b, ops.Add(b, h, ops.Const(b, ir.F32, number)))
		}
		b.SetState("total", ops.Add(b, h, b.Input("x", ir.F32, ir.N(1000))))
	})
	must(t, err)
	return g
}

// A plan is made once for equal graphs, targets and programs, and made again where its
// file is damaged.
func TestPlansAreCachedOnDisk(t *testing.T) {
	fake.Install(t, false)
	compiled := func(number float64, o native.Options) native.Program {
		p := compileWith(t, cuda.New(0), tall(t, number), o)
		must(t, call(p))
		return p
	}
	want := cuda.Sources(compiled(0.5, native.Options{}))
	if n := len(cached(t)); n != len(want)+1 {
		t.Fatalf("%d files for %d kernels and a plan", n, len(want))
	}
	file := mark(t)
	for what, c := range map[string]struct {
		p    native.Program
		kept bool
	}{
		"an equal graph":       {compiled(0.5, native.Options{}), true},
		"another graph":        {compiled(0.25, native.Options{}), false},
		"the same, for others": {compiled(0.5, native.Options{TF32: true}), false},
	} {
		if got := cuda.PlanName(c.p) == marked; got != c.kept {
			t.Errorf("%s gets the plan that was kept: %t", what, got)
		}
	}
	must(t, os.Truncate(file, 1000))
	p := compiled(0.5, native.Options{})
	if cuda.PlanName(p) == marked || !reflect.DeepEqual(cuda.Sources(p), want) {
		t.Error("a damaged plan is not made again")
	}
}

// marked is a plan name that no compiler uses.
const marked = "kept"

// mark gives the only plan in the cache that name, and returns its file.
func mark(t *testing.T) string {
	t.Helper()
	for _, path := range cached(t) {
		dir, name := filepath.Split(path)
		sum, err := hex.DecodeString(filepath.Base(dir) + name)
		must(t, err)
		code, ok := cubin.Open().Get(cubin.Key(sum))
		if !ok {
			t.Fatalf("%s is damaged", path)
		}
		if p, err := plan.Decode(code); err == nil {
			p.Name = marked
			code, err := plan.Encode(p)
			must(t, errors.Join(err, cubin.Open().Put(cubin.Key(sum), code)))
			return path
		}
	}
	t.Fatal("there is no plan in the cache")
	return ""
}

// cached returns the files of the cache.
func cached(t *testing.T) (out []string) {
	t.Helper()
	must(t, filepath.WalkDir(os.Getenv(cubin.Variable), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// The key of a plan on disk is its target in printed form: no field may print as an address in
// memory. A type with a String method, such as [routine.Refusals], prints its contents.
func TestPrintedTargetHasNoAddresses(t *testing.T) {
	var look func(path string, of reflect.Type)
	look = func(path string, of reflect.Type) {
		if of == reflect.TypeFor[*routine.Refusals]() {
			return
		}
		switch of.Kind() {
		case reflect.Pointer, reflect.Func, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
			t.Errorf("%s is a %s", path, of.Kind())
		case reflect.Struct:
			for i := range of.NumField() {
				look(path+"."+of.Field(i).Name, of.Field(i).Type)
			}
		case reflect.Map:
			look(path+"'s keys", of.Key())
			look(path+"'s values", of.Elem())
		case reflect.Slice, reflect.Array:
			look(path+"'s elements", of.Elem())
		}
	}
	look("Target", reflect.TypeFor[plan.Target]())
}
