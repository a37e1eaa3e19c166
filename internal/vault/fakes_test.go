package vault

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostiary/ostiary/internal/durable"
)

// fakeKeyring is a keyring in memory, or one that fails or hangs.
type fakeKeyring struct {
	err   error
	hang  chan struct{} // calls wait until it is closed
	asked atomic.Int64

	mu    sync.Mutex
	items map[string]string // guarded by mu
}

func (k *fakeKeyring) wait() error {
	k.asked.Add(1)
	if k.hang != nil {
		<-k.hang
	}
	return k.err
}

func (k *fakeKeyring) Get(service, account string) (string, error) {
	if err := k.wait(); err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.items[service+"/"+account]
	if !ok {
		return "", ErrNotFound
	}
	return v, nil
}

func (k *fakeKeyring) Set(service, account, value string) error {
	if err := k.wait(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.items == nil {
		k.items = map[string]string{}
	}
	k.items[service+"/"+account] = value
	return nil
}

var errPower = errors.New("power lost")

// powerDisk is a disk in memory that loses power after a number of steps. What was not synced is then lost in part: of a
// file's bytes a beginning remains, of the changes of names the first few.
type powerDisk struct {
	steps int // until power is lost; negative: never

	names   map[string]*inode
	durable map[string]*inode // names that survive
	pending []func(map[string]*inode)
}

type inode struct {
	data   []byte
	synced int // bytes that survive
}

func newPowerDisk() *powerDisk {
	return &powerDisk{steps: -1, names: map[string]*inode{}, durable: map[string]*inode{}}
}

func (d *powerDisk) step() error {
	switch {
	case d.steps == 0:
		return errPower
	case d.steps > 0:
		d.steps--
	}
	return nil
}

func (d *powerDisk) change(fn func(map[string]*inode)) {
	fn(d.names)
	d.pending = append(d.pending, fn)
}

func (d *powerDisk) read(path string, limit int64, _ bool) ([]byte, error) {
	if d.steps == 0 {
		return nil, errPower
	}
	n := d.names[path]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(n.data), nil
}

func (d *powerDisk) Create(path string) (durable.File, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	if d.names[path] != nil {
		return nil, fs.ErrExist
	}
	n := &inode{}
	d.change(func(names map[string]*inode) { names[path] = n })
	return &powerFile{d, n}, nil
}

func (d *powerDisk) Rename(from, to string) error {
	if err := d.step(); err != nil {
		return err
	}
	n := d.names[from]
	if n == nil {
		return fs.ErrNotExist
	}
	d.change(func(names map[string]*inode) { names[to] = n; delete(names, from) })
	return nil
}

func (d *powerDisk) Remove(path string) error {
	if d.names[path] == nil {
		return fs.ErrNotExist
	}
	if err := d.step(); err != nil {
		return err
	}
	d.change(func(names map[string]*inode) { delete(names, path) })
	return nil
}

func (d *powerDisk) SyncDir(string) error {
	if err := d.step(); err != nil {
		return err
	}
	for _, fn := range d.pending {
		fn(d.durable)
	}
	d.pending = nil
	return nil
}

// restart gives power back, to what the loss has left: choose says how much that is, between the least and the most.
func (d *powerDisk) restart(choose func(least, most int) int) {
	d.steps = -1
	for _, fn := range d.pending[:choose(0, len(d.pending))] {
		fn(d.durable)
	}
	d.pending = nil
	d.names = map[string]*inode{}
	for _, path := range slices.Sorted(maps.Keys(d.durable)) {
		n := d.durable[path]
		n.data = n.data[:choose(n.synced, len(n.data))]
		n.synced = len(n.data)
		d.names[path] = n
	}
}

type powerFile struct {
	d *powerDisk
	n *inode
}

func (f *powerFile) Write(b []byte) (int, error) {
	half := len(b) / 2
	f.n.data = append(f.n.data, b[:half]...)
	if err := f.d.step(); err != nil {
		return half, err
	}
	f.n.data = append(f.n.data, b[half:]...)
	return len(b), nil
}

func (f *powerFile) Sync() error {
	if err := f.d.step(); err != nil {
		return err
	}
	f.n.synced = len(f.n.data)
	return nil
}

func (f *powerFile) Close() error { return f.d.step() }
