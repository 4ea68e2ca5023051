package safetensors_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/wholefile"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// saving names the environment variable that makes this program a process that
// saves to a file until it is killed.
const saving = "RLX_TEST_SAVES_TO"

func TestMain(m *testing.M) {
	if name := os.Getenv(saving); name != "" {
		saveForEver(name)
	}
	os.Exit(m.Run())
}

// version is a state, all of whose elements are the same number.
func version(k byte) map[string]native.Tensor {
	return map[string]native.Tensor{"w": {DType: ir.U8, Dims: []int{1 << 20}, Data: bytes.Repeat([]byte{k}, 1<<20)}}
}

// saveForEver prints when the first version is in the file.
func saveForEver(name string) {
	for k := 0; ; k++ {
		if err := safetensors.WriteFile(name, version(byte(k)), nil); err != nil {
			panic(err)
		}
		if k == 0 {
			os.Stdout.WriteString("saved\n")
		}
	}
}

func TestKilledWriteKeepsOldOrNewFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "w.safetensors")
	interrupted := 0
	for range 200 {
		saveAndKill(t, name)
		tensors, _, err := safetensors.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		w := tensors["w"].Data
		if len(w) != 1<<20 || !bytes.Equal(w[1:], w[:len(w)-1]) {
			t.Fatal("the file is a mixture of two versions")
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(name), ".*.tmp"))
		if err != nil {
			t.Fatal(err)
		}
		for _, tmp := range left {
			interrupted++
			if err := os.Remove(tmp); err != nil {
				t.Fatal(err)
			}
		}
	}
	if interrupted == 0 {
		t.Error("no process was killed while it was writing")
	}
}

// saveAndKill starts a process that saves, and kills it at some time after its
// first save.
func saveAndKill(t *testing.T, name string) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), saving+"="+name)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = c.Wait() // it was killed
}

func TestWriteFileKeepsPermissionsAndLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows knows neither")
		return
	}
	dir := t.TempDir()
	name, link := filepath.Join(dir, "w.safetensors"), filepath.Join(dir, "latest")
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, 0o640), os.Symlink(name, link)); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.WriteFile(link, version(1), nil); err != nil {
		t.Fatal(err)
	}
	file, err := os.Lstat(name)
	if err != nil || file.Mode() != 0o640 || file.Size() < 1<<20 {
		t.Errorf("the file is %v, %v", file, err)
	}
	if l, err := os.Lstat(link); err != nil || l.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is %v, %v", l, err)
	}
}

func TestFailedWriteFileKeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "w.safetensors")
	if err := safetensors.WriteFile(name, version(1), nil); err != nil {
		t.Fatal(err)
	}
	bad := map[string]native.Tensor{"__metadata__": native.Int32(1)}
	if err := safetensors.WriteFile(name, bad, nil); !errors.Is(err, ir.ErrName) {
		t.Errorf("error %v", err)
	}
	if err := safetensors.WriteFile(dir, version(2), nil); err == nil {
		t.Error("a folder was replaced")
	}
	if err := safetensors.WriteFile(filepath.Join(dir, "none", "w"), version(2), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	tensors, _, err := safetensors.ReadFile(name)
	if err != nil || tensors["w"].Data[0] != 1 {
		t.Errorf("the file was changed: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestThePermissionsHoldFromTheFirstByteOn looks at every file of the folder while a file
// that others may not read is written.
func TestThePermissionsHoldFromTheFirstByteOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows has no such permissions")
		return
	}
	name := filepath.Join(t.TempDir(), "w.safetensors")
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	stop, seen := make(chan struct{}), make(chan fs.FileMode, 1)
	go func() {
		var all fs.FileMode
		for {
			entries, _ := os.ReadDir(filepath.Dir(name))
			for _, e := range entries {
				if info, err := e.Info(); err == nil {
					all |= info.Mode().Perm()
				}
			}
			select {
			case <-stop:
				seen <- all
				return
			default:
			}
		}
	}()
	for k := range 50 {
		if err := safetensors.WriteFile(name, version(byte(k)), nil); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if mode := <-seen; mode != 0o600 {
		t.Errorf("some file had the permissions %v", mode)
	}
}

func TestWriteFileHandlesLongNamesAndDanglingLinks(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("n", 255))
	if err := safetensors.WriteFile(long, version(1), nil); err != nil {
		t.Errorf("a name of 255 bytes: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	link, round := filepath.Join(dir, "latest"), filepath.Join(dir, "round")
	if err := errors.Join(os.Symlink("later.safetensors", link), os.Symlink("round", round)); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.WriteFile(link, version(2), nil); err != nil {
		t.Fatal(err)
	}
	l, err := os.Lstat(link)
	if err != nil || l.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is %v, %v", l, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "later.safetensors")); err != nil {
		t.Errorf("what the link names: %v", err)
	}
	if err := safetensors.WriteFile(round, version(3), nil); err == nil {
		t.Error("a link to itself was written to")
	}
}

// TestErrorsOfWriteFileNameTheFile checks that they do not name its temporary file.
func TestErrorsOfWriteFileNameTheFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{filepath.Join(dir, "absent", "w.safetensors"), dir} {
		var of *fs.PathError
		if err := safetensors.WriteFile(name, version(1), nil); !errors.As(err, &of) || of.Path != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTemporaryFilesOfKilledSavesAreRemoved checks that other files stay.
func TestTemporaryFilesOfKilledSavesAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*") // no pattern
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "w.safetensors")
	old := time.Now().Add(-2 * time.Hour)
	kept := []string{".w.safetensors.17.tmp", ".rlx-0123456789abcdef-0123456789abcdef.tmp", "notes.tmp"}
	stale, fresh := wholefile.TemporaryPrefix("w.safetensors")+"0123456789abcdef.tmp", wholefile.TemporaryPrefix("w.safetensors")+"1111111111111111.tmp"
	for _, file := range append([]string{stale, fresh}, kept...) {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if file != fresh {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := safetensors.WriteFile(name, version(1), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, stale)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a killed save has left: %v", err)
	}
	for _, file := range append(kept, fresh) {
		if _, err := os.Lstat(filepath.Join(dir, file)); err != nil {
			t.Errorf("%s was removed: %v", file, err)
		}
	}
}

// TestNamesThatTheFormatCannotHoldAreRefused: two of them would become one.
func TestNamesThatTheFormatCannotHoldAreRefused(t *testing.T) {
	var file bytes.Buffer
	one := native.Int32(1)
	if err := safetensors.Write(&file, map[string]native.Tensor{"a\xff": one, "a\xfe": one}, nil); !errors.Is(err, ir.ErrName) || file.Len() > 0 {
		t.Errorf("names that are not UTF-8: %v after %d bytes", err, file.Len())
	}
	if err := safetensors.Write(&file, nil, map[string]string{"k": "\xff"}); !errors.Is(err, ir.ErrName) {
		t.Errorf("metadata that is not UTF-8: %v", err)
	}
	deep := native.Tensor{DType: ir.I32, Dims: slices.Repeat([]int{1}, 65), Data: one.Data}
	if err := safetensors.Write(&file, map[string]native.Tensor{"a": deep}, nil); !errors.Is(err, ir.ErrShape) {
		t.Errorf("65 axes: %v", err)
	}
}

// TestHostileRankDoesNotAllocate reads 10 MB that declare 5,000,001 axes.
func TestHostileRankDoesNotAllocate(t *testing.T) {
	text := `{"a":{"dtype":"F32","shape":[` + strings.Repeat("1,", 5_000_000) + `1],"data_offsets":[0,4]}}`
	text += strings.Repeat(" ", -len(text)&7)
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	data = append(data, 0, 0, 0, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := safetensors.Decode(data)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, safetensors.ErrDamaged) || taken > 1<<20 {
		t.Errorf("%d bytes were taken for %v", taken, err)
	}
}
