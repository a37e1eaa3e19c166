package vault

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const writerVariable = "OSTIARY_TEST_VAULT_WRITER"

func TestMain(m *testing.M) {
	if job := os.Getenv(writerVariable); job != "" {
		os.Exit(writeAll(job))
	}
	os.Exit(m.Run())
}

const each = 8 // secrets of a writer

// writeAll is the child's side: it keeps secrets of its own, and changes the key in between.
func writeAll(job string) int {
	who, dir, _ := strings.Cut(job, " ")
	v, err := Open(Options{Dir: dir, Keys: []Place{InFile}})
	for i := 0; err == nil && i < each; i++ {
		err = v.Set(context.Background(), fmt.Sprintf("%s/%d", who, i), NewSecret(who))
		if err == nil && i == each/2 {
			err = v.Rotate(context.Background())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Processes that write at once lose nothing of each other, and one that reads meanwhile sees a whole vault each time.
func TestProcesses(t *testing.T) {
	const writers = 4
	dir := t.TempDir()
	set(t, openTest(t, Options{Dir: dir}), "first", "one")
	done := make(chan error, writers)
	for w := range writers {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), fmt.Sprintf("%s=w%d %s", writerVariable, w, dir))
		var stderr bytes.Buffer
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			err := c.Wait()
			if err != nil {
				err = errors.Join(err, errors.New(stderr.String()))
			}
			done <- err
		}()
	}
	had := 1
	for running := writers; running > 0; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			running--
		default:
		}
		v := openTest(t, Options{Dir: dir}) // without a key in memory
		infos, err := v.List(t.Context())
		if err != nil || len(infos) < had {
			t.Fatalf("a reader saw %d secrets after %d, %v", len(infos), had, err)
		}
		had = len(infos)
	}
	if want := 1 + writers*each; had != want {
		t.Errorf("the vault has %d secrets, want %d", had, want)
	}
}

// A-58, R6.9: no secret and no key is in clear in the data directory, in an error or in the log.
func TestA58_NothingInClear(t *testing.T) {
	const canary = "canary-5d2e8a41-token"
	dir := t.TempDir()
	var log strings.Builder
	ring := &fakeKeyring{}
	o := Options{Dir: dir, Keys: []Place{InKeyring, InFile}, Keyring: ring, Env: noEnv,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	v := openTest(t, o)
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	set(t, v, "a", canary)
	note(v.Set(t.Context(), "a", NewSecret(canary+"\xff")))
	if err := v.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "sealed", string(sealed(t, v, canary)))
	text, err := ring.Get(keyringService, v.o.Account)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.Fields(text)[len(strings.Fields(text))-1]
	ring.err = errors.New("locked")
	note(openTest(t, o).Check(t.Context()))
	for _, text := range []string{key + "x", key + " " + canary, canary} {
		o := o
		o.Keys, o.Env = []Place{InEnvironment}, env(KeyVariable, text)
		note(openTest(t, o).Check(t.Context()))
	}
	b, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, File, string(b[:len(b)-1]))
	note(v.Check(t.Context()))
	write(t, dir, File, string(b))

	clear := func(where string, b []byte) {
		for _, secret := range []string{canary, key, key[20:]} {
			for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))[:20]} {
				if bytes.Contains(b, []byte(form)) {
					t.Errorf("%s has a secret in clear", where)
				}
			}
		}
	}
	for _, err := range errs {
		if err == nil {
			t.Error("no error where there should be one")
			continue
		}
		clear("error", []byte(err.Error()))
		clear("error", fmt.Appendf(nil, "%#v", err))
	}
	clear("log", []byte(log.String()))
	files := 0
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := checkPrivate(path, info); err != nil {
			t.Error(err)
		}
		b, err := os.ReadFile(path)
		clear(path, b)
		return err
	}); err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
	if log.Len() == 0 {
		t.Error("the log is empty: the test reads nothing there")
	}
}
