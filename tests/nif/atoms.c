/* Makes atoms in each way that there is. */
#include <erl_nif.h>
#include <string.h>

/* Headers of older releases do not have it. */
extern int enif_make_new_atom(ErlNifEnv *env, const char *name, ERL_NIF_TERM *atom, ErlNifCharEncoding encoding);

static int text(ErlNifEnv *env, ERL_NIF_TERM t, char *to)
{
    return enif_get_string(env, t, to, 256, ERL_NIF_LATIN1) > 0;
}

static ERL_NIF_TERM make(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char name[256];
    return text(env, argv[0], name) ? enif_make_atom(env, name) : enif_make_badarg(env);
}

static ERL_NIF_TERM length(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char name[256];
    return text(env, argv[0], name) ? enif_make_atom_len(env, name, strlen(name)) : enif_make_badarg(env);
}

static ERL_NIF_TERM known(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char name[256];
    ERL_NIF_TERM found;
    if (!text(env, argv[0], name))
        return enif_make_badarg(env);
    return enif_make_atom(env, enif_make_existing_atom(env, name, &found, ERL_NIF_LATIN1) ? "true" : "false");
}

/* The atom, or `false`. */
static ERL_NIF_TERM new(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char name[256];
    ERL_NIF_TERM made;
    if (!text(env, argv[0], name))
        return enif_make_badarg(env);
    return enif_make_new_atom(env, name, &made, ERL_NIF_LATIN1) ? made : enif_make_atom(env, "false");
}

static ErlNifFunc funcs[] = {{"make", 1, make, 0}, {"known", 1, known, 0}, {"new", 1, new, 0}, {"length", 1, length, 0}};
ERL_NIF_INIT(atoms, funcs, NULL, NULL, NULL, NULL)
