package tune

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/sched"
)

// Variable is the environment variable that names the folder of stores; without it that
// is rlx/tune in the user's cache folder. "off" is none.
const Variable = "RLX_TUNE_CACHE"

// Store is what was found on one device. It is a text of a line for each group, after one
// that names its form and the device:
//
//	rlx-tune 1 NVIDIA H200, driver 13.0
//	0f3a…  elements each=4  201183ns  131737ns
//
// with the key, the schedule, and the times untuned and tuned between tabs. Not for several
// goroutines.
type Store struct {
	path    string // "" where nothing is kept
	device  string
	found   map[sched.Key]Result
	changed bool
	// Problems say what of the file was not understood and is measured again.
	Problems []error
}

// Open reads the store of a device, by a name that tells it and its driver from others.
// A store that cannot be read is empty, and its Problems say why.
func Open(device string) *Store {
	s := &Store{device: strings.Join(strings.Fields(device), " "), found: map[sched.Key]Result{}}
	dir := os.Getenv(Variable)
	if dir == "off" {
		return s
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			s.Problems = append(s.Problems, err) // a user without a home
			return s
		}
		dir = filepath.Join(cache, "rlx", "tune")
	}
	sum := sha256.Sum256([]byte(s.device))
	s.path = filepath.Join(dir, hex.EncodeToString(sum[:8])+".txt")
	file, err := os.ReadFile(s.path)
	if err == nil {
		s.read(file)
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.Problems = append(s.Problems, err)
	}
	return s
}

// head is the first line of a store.
func (s *Store) head() string { return "rlx-tune 1 " + s.device }

func (s *Store) read(file []byte) {
	lines := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; lines.Scan(); n++ {
		if n == 1 {
			if lines.Text() != s.head() {
				s.Problems = append(s.Problems, fmt.Errorf("%s: line 1 is %q, not %q", s.path, lines.Text(), s.head()))
				return
			}
			continue
		}
		r, err := parseResult(lines.Text())
		if err != nil {
			s.Problems = append(s.Problems, fmt.Errorf("%s: line %d: %w", s.path, n, err))
			continue
		}
		s.found[r.Key] = r
	}
	if err := lines.Err(); err != nil {
		s.Problems = append(s.Problems, fmt.Errorf("%s: %w", s.path, err))
	}
}

func parseResult(line string) (r Result, err error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 4 {
		return r, fmt.Errorf("%d fields, not 4", len(fields))
	}
	if r.Key, err = sched.ParseKey(fields[0]); err != nil {
		return r, err
	}
	if r.Schedule, err = sched.ParseSchedule(fields[1]); err != nil {
		return r, err
	}
	if r.Untuned, err = time.ParseDuration(fields[2]); err != nil {
		return r, err
	}
	r.Tuned, err = time.ParseDuration(fields[3])
	return r, err
}

// Get returns what was found for a group.
func (s *Store) Get(k sched.Key) (Result, bool) {
	r, ok := s.found[k]
	return r, ok
}

// Put notes what was found for a group. [Store.Save] keeps it.
func (s *Store) Put(r Result) {
	s.found[r.Key] = r
	s.changed = true
}

// Save writes what was found, where something is new. Two processes that save at once
// leave the file of one of them, whole; what the other found is measured again.
func (s *Store) Save() error {
	if s.path == "" || !s.changed {
		return nil
	}
	lines := make([]string, 0, len(s.found))
	for _, r := range s.found {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%dns\t%dns\n", r.Key, r.Schedule, r.Untuned.Nanoseconds(), r.Tuned.Nanoseconds()))
	}
	slices.Sort(lines)
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return err
	}
	// A file that is written appears under another name, and is renamed once it is whole.
	f, err := os.CreateTemp(filepath.Dir(s.path), "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	_, err = f.WriteString(s.head() + "\n" + strings.Join(lines, ""))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), s.path); err != nil {
		return err
	}
	s.changed = false
	return nil
}
