/*
 * One run, three hosts, and everything that may go wrong between two steps of a host.
 *
 * Each d_step is one transaction, or one look. Between any two of them any host may move,
 * time may pass, and a host may crash; a host that is not scheduled for a while is one that
 * was stopped. The properties stand at the end. Each -D switch below takes one guard away,
 * and README.md says which property must break by it.
 */
#define N         3
#define NOBODY    N
#define STALE     4                   /* in intervals of the pulse */
#define SKEW      1                   /* how far two clocks may be apart */
#define TOLERANCE (STALE - SKEW - 1)  /* how long an owner works unconfirmed */
#define OLD       (STALE + 1)         /* no age needs to be told from a greater one */

mtype = { idle, sees_free, sees_stale, sees_claim, claims, owns, beats, checked };

/* --- the row ------------------------------------------------------------------------- */
bool running;
byte owner = NOBODY, claimant = NOBODY;
byte fence, owner_fence;              /* names rather than numbers: see README.md */
byte age, claim_age;                  /* of the heartbeat, of the claim */

/* --- what each host knows ------------------------------------------------------------ */
mtype at[N] = idle;
bool alive[N] = true;
bool seen[N];                         /* its snapshot is still what the row shows */
byte victim[N];                       /* whose claim it has seen */
byte mine[N];                         /* the fence of its claim or ownership */
byte unconfirmed[N], sent[N];         /* age of its last confirmed beat, of the one under way */
bool passed[N];                       /* its right to write was checked, some time ago */
byte crashes = N - 1;                 /* one host survives */

/* --- what only the model knows ------------------------------------------------------- */
bool rightful[N];                     /* was granted the run last and has not given it up */
byte zombie = NOBODY, zombie_fence;   /* an execution that outlives its ownership */
bool stray;                           /* a write was accepted of somebody not rightful */

/* --- the guards ---------------------------------------------------------------------- */
#if defined(NO_STALENESS)
#define LOOKS_STALE(a) true
#elif defined(CLOCKS_APART)
#define LOOKS_STALE(a) (a + STALE > STALE)
#else
#define LOOKS_STALE(a) (a + SKEW > STALE)
#endif
#ifdef SLOW_LOOKS_DEAD
#define MAY_BE_DEAD(p) true
#else
#define MAY_BE_DEAD(p) (!alive[p])
#endif
#ifdef NO_SNAPSHOT
#define SAME(p) true
#else
#define SAME(p) seen[p]
#endif
#ifdef NO_TOKEN
#define CLAIMED_BY(p) (claimant != NOBODY)
#else
#define CLAIMED_BY(p) (claimant == p && fence == mine[p])
#endif
#ifdef NO_FENCE
#define OWNED_BY(p, f) (running && owner == p)
#else
#define OWNED_BY(p, f) (running && owner == p && owner_fence == f)
#endif
#ifdef NO_STEAL
#define STEALABLE(p) false
#else
#define STEALABLE(p) (running && claimant == NOBODY && SAME(p) && LOOKS_STALE(age))
#endif
#ifdef RECONFIRM_OVER_CLAIM
#define UNCLAIMED true
#else
#define UNCLAIMED (claimant == NOBODY)
#endif
#define FREE(p) (!running && claimant == NOBODY && SAME(p))
#ifdef NO_RECOVERY
#define RECOVERABLE(p) false
#else
#define RECOVERABLE(p) (claimant == victim[p] && LOOKS_STALE(claim_age) && MAY_BE_DEAD(claimant))
#endif
#define HAS_IT(p) (at[p] == owns || at[p] == beats)
#ifdef NO_DEADLINE
#define WORKS(p) (alive[p] && HAS_IT(p))
#else
#define WORKS(p) (alive[p] && HAS_IT(p) && unconfirmed[p] < TOLERANCE)
#endif

/* --- what happens to the row --------------------------------------------------------- */
inline changed() { seen[0] = false; seen[1] = false; seen[2] = false }

inline grant(p)
{
    fence = 1;
#ifndef SAME_FENCE_AGAIN
    do
    :: fence == owner_fence || fence == zombie_fence -> fence++
    :: fence == mine[0] || fence == mine[1] || fence == mine[2] -> fence++
    :: else -> break
    od;
#endif
    claimant = p; claim_age = 0; mine[p] = fence; at[p] = claims
}

inline clear_claim() { claimant = NOBODY; claim_age = 0; fence = owner_fence }

inline beaten(p, a)                   /* a beat that was sent a intervals ago got through */
{
    if :: a < age -> age = a; changed() :: else fi;
    unconfirmed[p] = (a < TOLERANCE -> a : TOLERANCE); sent[p] = 0; at[p] = owns
}

inline install(p)
{
    running = true; owner = p; owner_fence = fence; age = 0; clear_claim(); changed();
    rightful[0] = false; rightful[1] = false; rightful[2] = false; rightful[p] = true;
    unconfirmed[p] = 0; at[p] = owns
}

inline stop(p)
{
    at[p] = idle; seen[p] = false; mine[p] = 0; unconfirmed[p] = 0; sent[p] = 0;
    rightful[p] = false
}

/* --- what hosts do ------------------------------------------------------------------- */
proctype host(byte p)
{
    do
    :: d_step { crashes > 0 && p < N - 1 -> alive[p] = false; crashes--; stop(p) }; break

    :: d_step { at[p] == idle ->      /* look; by the time it acts, it may be over */
        if
        :: claimant == NOBODY && !running -> seen[p] = true; at[p] = sees_free
        :: claimant == NOBODY && running && LOOKS_STALE(age) -> seen[p] = true; at[p] = sees_stale
        :: claimant != NOBODY && LOOKS_STALE(claim_age) -> victim[p] = claimant; at[p] = sees_claim
        :: else
        fi }

    :: d_step { at[p] == sees_free -> if :: FREE(p) -> grant(p) :: else -> stop(p) fi }
    :: d_step { at[p] == sees_stale -> if :: STEALABLE(p) -> grant(p) :: else -> stop(p) fi }
    :: d_step { at[p] == sees_claim ->
        if :: RECOVERABLE(p) -> clear_claim() :: else fi; victim[p] = 0; stop(p) }

    :: d_step { at[p] == claims ->
        if
#ifdef ACTIVATE_IN_TWO_STEPS
        :: CLAIMED_BY(p) && SAME(p) -> at[p] = checked
#else
        :: CLAIMED_BY(p) && SAME(p) -> install(p)
#endif
        :: CLAIMED_BY(p) && !SAME(p) -> clear_claim(); stop(p)
        :: else -> stop(p)
        fi }
    :: d_step { at[p] == checked -> install(p) }

    /* Beat: the reading is taken now, and written whenever it gets through. */
    :: d_step { at[p] == owns && unconfirmed[p] < TOLERANCE -> sent[p] = 0; at[p] = beats }
    :: d_step { at[p] == beats ->
        if :: OWNED_BY(p, mine[p]) -> beaten(p, sent[p]) :: else -> stop(p) fi }

    /* Overdue: ask once whether the run is still ours. */
    :: d_step { HAS_IT(p) && unconfirmed[p] >= TOLERANCE ->
        if :: OWNED_BY(p, mine[p]) && UNCLAIMED -> beaten(p, 0) :: else -> stop(p) fi }

    /* Write: the owner, and what has outlived an ownership. */
#ifdef WRITE_IN_TWO_STEPS
    :: d_step { HAS_IT(p) && OWNED_BY(p, mine[p]) -> passed[p] = true }
    :: d_step { HAS_IT(p) && passed[p] -> stray = stray || !rightful[p]; passed[p] = false }
#else
    :: d_step { HAS_IT(p) && OWNED_BY(p, mine[p]) && !rightful[p] -> stray = true }
#endif
    :: d_step { zombie == p && OWNED_BY(p, zombie_fence) -> stray = true }

    /* Put back; a thread that nobody could stop may go on. */
    :: d_step { at[p] == owns ->
        if
        :: OWNED_BY(p, mine[p]) ->
            zombie = p; zombie_fence = mine[p];
            running = false; owner = NOBODY; owner_fence = 0; age = 0; clear_claim(); changed()
        :: else
        fi;
        stop(p) }
    od
}

#define GROW(x, most) x = (x < most -> x + 1 : most)

active proctype time()
{
    byte p;
    do
    :: d_step {
        if :: running -> GROW(age, OLD) :: else fi;
        if :: claimant != NOBODY -> GROW(claim_age, OLD) :: else fi;
        for (p : 0 .. N - 1) {
            if :: HAS_IT(p) -> GROW(unconfirmed[p], TOLERANCE) :: else fi;
            if :: at[p] == beats -> GROW(sent[p], OLD) :: else fi
        }
        p = 0 }
    od
}

init { atomic { run host(0); run host(1); run host(2) } }

/* --- what holds ---------------------------------------------------------------------- */
#define BOTH(p, q) (WORKS(p) && WORKS(q))

#define GROUNDED(p) (!WORKS(p) || (running && owner == p && owner_fence == mine[p]))

/* Whoever works on the run is its owner, and under the fence it knows. */
ltl grounded { [] (GROUNDED(0) && GROUNDED(1) && GROUNDED(2)) }

/* Never two that work on the run at once. */
ltl exclusive { [] !(BOTH(0, 1) || BOTH(0, 2) || BOTH(1, 2)) }

/* Never a write accepted of whoever has lost the run. */
ltl fenced { [] !stray }

/* However hosts crash and stop: a living one gets the run, again and again. */
ltl retakable { [] <> (running && alive[owner]) }
