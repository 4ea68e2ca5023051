//go:build cgo && linux

package driver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// scaling writes a package that multiplies by a weight from its file of weights.
func scaling(t *testing.T, weight float32) string {
	w := make([]float32, 32)
	for i := range w {
		w[i] = weight
	}
	return written(t, coreml.Options{Weights: map[string]native.Tensor{"w": native.Float32s(w, 32)}}, func(b *ir.Builder) {
		b.Output("y", ops.Mul(b, b.Input("x", ir.F32, ir.N(32)), b.Param("w", ir.F32, ir.N(32))))
	})
}

// scaled loads such a package, runs it and returns its factor.
func scaled(t *testing.T, rt driver.Runtime, dir string) float32 {
	t.Helper()
	m, err := coreml.Load(rt, dir, "step", driver.AllUnits)
	if err != nil {
		t.Error(err)
		return 0
	}
	ones := bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 32)
	out, err := m.Predict(map[string]native.Tensor{"x": {DType: ir.F32, Dims: []int{32}, Data: ones}})
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	y, _ := out["y"].Float32s()
	return y[31]
}

// compiles holds what loading a package gives, and how often it was compiled for that.
func compiles(t *testing.T, what string, want int, rt driver.Runtime, dir string, weight float32) {
	t.Helper()
	before := software.Compiled(library)
	if got := scaled(t, rt, dir); got != weight {
		t.Errorf("%s: it multiplies by %v, not by %v", what, got, weight)
	}
	if n := software.Compiled(library) - before; n != want {
		t.Errorf("%s: it was compiled %d times, not %d", what, n, want)
	}
}

// cacheFolder makes a folder the cache, and another one that of temporary files.
func cacheFolder(t *testing.T) (cache, temporary string) {
	cache, temporary = t.TempDir(), t.TempDir()
	t.Setenv(driver.CacheVariable, cache)
	t.Setenv("TMPDIR", temporary)
	return cache, temporary
}

// entries returns the names in a folder.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, filepath.Join(dir, f.Name()))
	}
	return out
}

func TestPackagesAreCompiledOnceForASystem(t *testing.T) {
	rt := runtime(t)
	dir, other, again := scaling(t, 3), scaling(t, 4), scaling(t, 3)
	cache, temporary := cacheFolder(t)
	compiles(t, "the first time", 1, rt, dir, 3)
	compiles(t, "the second time", 0, rt, dir, 3)
	compiles(t, "an equal package elsewhere", 0, rt, again, 3)
	compiles(t, "another weight", 1, rt, other, 4)
	compiles(t, "the first one again", 0, rt, dir, 3)
	software.Older(library, true)
	compiles(t, "another version of the system", 1, rt, dir, 3)
	software.Older(library, false)
	if n := len(entries(t, cache)); n != 3 {
		t.Errorf("the cache has %d entries", n)
	}
	if left := entries(t, temporary); len(left) > 0 {
		t.Errorf("there is left %v", left)
	}
}

func TestDamagedEntriesAreRebuilt(t *testing.T) {
	rt := runtime(t)
	dir := scaling(t, 3)
	cache, temporary := cacheFolder(t)
	compiles(t, "the first time", 1, rt, dir, 3)
	entry := entries(t, cache)[0]
	for what, damage := range map[string]func() error{
		"a model cut short": func() error { return os.Truncate(filepath.Join(entry, "Data/com.apple.CoreML/model.mlmodel"), 40) },
		"weights cut short": func() error {
			return os.Truncate(filepath.Join(entry, "Data/com.apple.CoreML/weights/weight.bin"), 100)
		},
		"an empty folder":     func() error { return os.RemoveAll(filepath.Join(entry, "Manifest.json")) },
		"a file for a folder": func() error { return replace(entry) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		compiles(t, what, 1, rt, dir, 3)
		compiles(t, what+", after that", 0, rt, dir, 3)
	}
	if n := len(entries(t, cache)) + len(entries(t, temporary)); n != 1 {
		t.Errorf("there are %d files: %v %v", n, entries(t, cache), entries(t, temporary))
	}
}

// replace makes a folder a file.
func replace(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("no model"), 0o644)
}

// TestACacheThatCannotBeWrittenTo: the package is compiled each time, and the compiled files belong
// to the model.
func TestACacheThatCannotBeWrittenTo(t *testing.T) {
	rt := runtime(t)
	dir := scaling(t, 3)
	cache, temporary := cacheFolder(t)
	file := filepath.Join(cache, "file")
	if err := os.WriteFile(file, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	t.Setenv(driver.CacheVariable, filepath.Join(file, "a folder in a file")) // cannot be, not even for root
	for range 2 {
		compiles(t, "nowhere to write", 1, rt, dir, 3)
		if left := entries(t, temporary); len(left) > 0 {
			t.Errorf("there is left %v", left)
		}
	}
	t.Setenv(driver.CacheVariable, "")
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	compiles(t, "a user without a folder", 1, rt, dir, 3)
}

// TestManyCompileAtOnce: who works with the cache at once shares nothing but the folder, in
// one process as in several. All get the right model, and there is one entry afterwards.
func TestManyCompileAtOnce(t *testing.T) {
	rt := runtime(t)
	dir := scaling(t, 3)
	cache, temporary := cacheFolder(t)
	for round := range 4 {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if got := scaled(t, rt, dir); got != 3 {
					t.Errorf("round %d: it multiplies by %v", round, got)
				}
			})
		}
		all.Wait()
		if n := len(entries(t, cache)) + len(entries(t, temporary)); n != 1 {
			t.Fatalf("there are %d files: %v %v", n, entries(t, cache), entries(t, temporary))
		}
		if err := os.RemoveAll(entries(t, cache)[0]); err != nil {
			t.Fatal(err)
		}
	}
}
