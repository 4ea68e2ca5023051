package wholefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx/internal/wholefile"
)

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "file")
	if err := wholefile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no space")
	err := wholefile.Make(path, func(temporary string) error {
		return errors.Join(os.WriteFile(temporary, []byte("ne"), 0o600), failed)
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v, not %v", err, failed)
	}
	have, _ := os.ReadFile(path)
	files, _ := os.ReadDir(filepath.Dir(path))
	if string(have) != "old" || len(files) != 1 {
		t.Errorf("after a failed write the file is %q among %d", have, len(files))
	}
	if err := wholefile.Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if have, _ := os.ReadFile(path); string(have) != "new" {
		t.Errorf("the file is %q, not new", have)
	}
}

// Errors of other files, which a function reads as it writes, keep their names.
func TestErrorsOfReplaceNameTheFileThatFails(t *testing.T) {
	path, absent := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "absent")
	for _, c := range []struct {
		path, failing string
		write         func(w io.Writer) error
	}{
		{path, absent, func(io.Writer) error {
			_, err := os.ReadFile(absent)
			return err
		}},
		{path, path, func(w io.Writer) error { return w.(*os.File).Truncate(-1) }},
		{filepath.Join(absent, "file"), filepath.Join(absent, "file"), nil},
	} {
		var of *fs.PathError
		if err := wholefile.Replace(c.path, c.write); !errors.As(err, &of) || of.Path != c.failing {
			t.Errorf("error %v, not of %s", err, c.failing)
		}
		if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 0 {
			t.Errorf("%d files are left", len(files))
		}
	}
}
