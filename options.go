package ostiary

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
)

// Version is the version of this build; the linker sets it.
var Version = "0.1.0-dev"

// Options say how a host is made. The zero value of a field is its default.
type Options struct {
	// ConfigFile is the path of ostiary.toml. Required, unless Config is given.
	ConfigFile string
	// Config is a configuration that was loaded already; only this module can make one.
	Config *config.Config
	// DataDir is where the store and the ledger's keys are. Required. It is made if it does not exist.
	DataDir string

	// Logger takes the log; nil: it is discarded.
	Logger *slog.Logger
	// Now is the clock; nil: the system's.
	Now func() time.Time
	// LookupEnv reads the environment; nil: the process's. Nothing else of the environment is used.
	LookupEnv func(string) (string, bool)

	// Only starts these providers alone, by package; nil: all. Exports that need others are left out.
	Only []string
	// NoEndpoint leaves out the inbound side; for a command that places one call itself.
	NoEndpoint bool

	// Offline starts no provider and opens no endpoint: what the data directory knows can be looked at and decided on.
	Offline bool
	// Lock is a lock file (R6.11): the start fails unless everything that is offered equals it. nil: there is none.
	Lock []byte

	// OnPhase is told as the start of a provider moves on, for progress on a terminal: connect, negotiate, listen, list,
	// validate, then ready or failed. It may be called from several goroutines at once.
	OnPhase func(provider, phase string)

	// failpoint stops tests between the steps of the path.
	failpoint func(step string)
	newID     func() call.ID
	uptime    func() time.Duration // by a clock that nobody sets
}

func (o *Options) fill() error {
	if o.DataDir == "" {
		return errors.New("options: DataDir is required")
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.uptime == nil {
		began := time.Now()
		o.uptime = func() time.Duration { return time.Since(began) }
	}
	if o.newID == nil {
		o.newID = newCallID(o.Now)
	}
	if o.Config == nil {
		if o.ConfigFile == "" {
			return errors.New("options: ConfigFile is required")
		}
		c, err := config.Load(o.ConfigFile, o.LookupEnv)
		if err != nil {
			return err
		}
		o.Config = c
	}
	return nil
}
