//go:build unix

package rlx_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rlx-go/rlx"
)

// fullDiskVariable makes the test binary the process that limits its files and gives up its rights.
const fullDiskVariable = "RLX_TEST_FULL_DISK"

// TestCheckpointsOnAFullDisk trains on, where files may have 64 bytes, and then in a folder that is read only. Both are errors
// with the name of the file, and the checkpoint before stays. With room again the training ends as one without these faults.
func TestCheckpointsOnAFullDisk(t *testing.T) {
	folder := os.Getenv(fullDiskVariable)
	if folder == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheckpointsOnAFullDisk$")
		c.Env = append(os.Environ(), fullDiskVariable+"="+t.TempDir())
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	t.Chdir(folder) // whose parents are another user's below
	folder = "."
	trainer, other := pointsTrainer(t, 0.1), pointsTrainer(t, 0.1)
	loop := rlx.Loop{Data: rlx.Shuffled(points(), 4, 1), Steps: 10, Save: rlx.Checkpoints{Folder: folder, Resume: true}, Eval: evaluation()}
	if _, err := rlx.Fit(ctx, trainer, loop); err != nil {
		t.Fatal(err)
	}
	before := contents(t, folder)
	loop.Steps = 15
	single := filepath.Join(folder, "step-00000010.safetensors")
	fails := func(reason error) {
		t.Helper()
		_, fit := rlx.Fit(ctx, trainer, loop)
		for _, err := range []error{fit, trainer.SaveFile(ctx, single)} {
			var of *fs.PathError
			if !errors.Is(err, reason) || !errors.As(err, &of) || filepath.Dir(of.Path) != folder || filepath.Ext(of.Path) != ".safetensors" {
				t.Errorf("%v is not the error %v of a checkpoint", err, reason)
			}
		}
		if after := contents(t, folder); len(after) != len(before) {
			t.Errorf("%d files, before %d", len(after), len(before))
		} else {
			for name, data := range before {
				if !bytes.Equal(after[name], data) {
					t.Errorf("%s was changed", name)
				}
			}
		}
	}

	signal.Ignore(syscall.SIGXFSZ) // so that a write fails
	var limit syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64, Max: limit.Max}))
	fails(syscall.EFBIG)
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))

	owner := 65534 // root may write to any folder
	if os.Getuid() == 0 {
		check(t, os.Chown(folder, owner, owner))
		check(t, syscall.Setuid(owner))
	}
	check(t, os.Chmod(folder, 0o555))
	fails(fs.ErrPermission)
	check(t, os.Chmod(folder, 0o755))

	if _, err := rlx.Fit(ctx, trainer, loop); err != nil {
		t.Fatal(err)
	}
	loop.Save = rlx.Checkpoints{}
	if _, err := rlx.Fit(ctx, other, loop); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(saved(t, trainer), saved(t, other)) {
		t.Error("the training does not end as one without faults")
	}
}

// contents returns the files of a folder.
func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(folder)
	check(t, err)
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// check ends a test at an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
