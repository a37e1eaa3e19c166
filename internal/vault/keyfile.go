package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"filippo.io/age"

	"github.com/ostiary/ostiary/internal/durable"
)

// filePlace is a key file with mode 0600.
type filePlace struct {
	path string
	disk disk
}

func (p filePlace) String() string { return "the key file " + p.path }

func (p filePlace) load(context.Context) (keys, error) {
	b, err := p.disk.read(p.path, maxKeyText, true)
	if errors.Is(err, fs.ErrNotExist) {
		return keys{}, fmt.Errorf("%w in %s, which does not exist", errNoKey, p)
	}
	if err != nil {
		return keys{}, fmt.Errorf("read key file: %w", err)
	}
	k, err := parseKeyText(string(b))
	if err != nil {
		return keys{}, fmt.Errorf("%s: %w", p, err)
	}
	return k, nil
}

func (p filePlace) store(_ context.Context, ids ...*age.X25519Identity) error {
	return durable.Replace(p.disk, p.path, []byte(keyText(ids)))
}
