/* Functions that end the emulator by a fault. The program `nif_faults` calls them in emulators of their own. */
#include <erl_nif.h>
#include <signal.h>
#include <stdlib.h>

#define NIF(Name) static ERL_NIF_TERM Name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])

NIF(store)
{
    *(volatile int *)8 = 1;
    return argv[0];
}

NIF(give_up)
{
    abort();
    return argv[0];
}

NIF(sent)
{
    raise(SIGSEGV);
    return argv[0];
}

/* The emulator ignores this one. */
NIF(ignored)
{
    raise(SIGFPE);
    return argv[0];
}

NIF(store_later)
{
    return enif_schedule_nif(env, "store", ERL_NIF_DIRTY_JOB_IO_BOUND, store, argc, argv);
}

static ErlNifFunc functions[] = {
    {"store", 1, store}, {"give_up", 1, give_up}, {"sent", 1, sent}, {"ignored", 1, ignored}, {"store_dirty", 1, store, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"store_later", 1, store_later}};

ERL_NIF_INIT(nif_faults, functions, NULL, NULL, NULL, NULL)
