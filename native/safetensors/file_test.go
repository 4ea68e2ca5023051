package safetensors_test

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

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

// saveForEver tells on its output when the first version is in the file.
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

func TestAKilledProcessLeavesTheOldFileOrTheNew(t *testing.T) {
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

func TestWriteFileThatFailsLeavesEverythingAsItWas(t *testing.T) {
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
