package wholefile_test

import (
	"errors"
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
